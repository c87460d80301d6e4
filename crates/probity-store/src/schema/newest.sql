-- The tables of a new store. The steps in `schema.rs` lead older stores to the same columns, in another order; a test holds the two
-- together.

CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE,
    suite TEXT NOT NULL,
    started_ms INTEGER NOT NULL,
    finished_ms INTEGER,
    status TEXT NOT NULL,
    -- Lanes that count; none while the run has not begun with all of them.
    lane_count INTEGER,
    -- Sums over a row tell of damage.
    sum INTEGER,
    info TEXT NOT NULL
) STRICT;

CREATE TABLE lanes (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
    runner TEXT NOT NULL,
    -- Empty if the runner has no variants.
    variant TEXT NOT NULL DEFAULT '',
    backend TEXT NOT NULL,
    info TEXT NOT NULL,
    status TEXT,
    calls INTEGER NOT NULL DEFAULT 0,
    -- 1: a resumed run no longer has the lane, so it does not count.
    retired INTEGER NOT NULL DEFAULT 0,
    sum INTEGER,
    UNIQUE (run, runner, variant, backend)
) STRICT;

-- Texts that many records share: cases, instructions. The key of a case begins with its id, and ends in the hash of its text.
CREATE TABLE texts (
    id INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    text TEXT NOT NULL
) STRICT;

-- Texts of any length come last: what stands behind one is found by reading all of it.
CREATE TABLE results (
    id INTEGER PRIMARY KEY,
    lane INTEGER NOT NULL REFERENCES lanes(id) ON DELETE CASCADE,
    case_id TEXT NOT NULL,
    repeat INTEGER NOT NULL,
    input BLOB NOT NULL,
    definition INTEGER NOT NULL REFERENCES texts(id),
    system INTEGER REFERENCES texts(id),
    stop_reason TEXT,
    model TEXT,
    source TEXT NOT NULL,
    latency_ms INTEGER NOT NULL,
    ttft_ms INTEGER,
    tokens_per_second REAL,
    input_tokens INTEGER,
    output_tokens INTEGER,
    cached_tokens INTEGER,
    usage_estimated INTEGER NOT NULL DEFAULT 0,
    cost_usd REAL,
    calls INTEGER NOT NULL,
    worker TEXT,
    started_ms INTEGER NOT NULL,
    elapsed_ms INTEGER NOT NULL,
    class TEXT NOT NULL,
    verdict TEXT NOT NULL,
    error_kind TEXT,
    policy_hits INTEGER NOT NULL DEFAULT 0,
    category TEXT,
    tags TEXT,
    case_group TEXT,
    -- 1: the case is no longer in the dataset, so it does not count.
    stale INTEGER NOT NULL DEFAULT 0,
    -- Sums over every part of a result tell of damage.
    facts_sum INTEGER,
    texts_sum INTEGER,
    asked_sum INTEGER,
    -- 0: the prompt is that of the case, and does not stand here again.
    own_prompt INTEGER NOT NULL DEFAULT 1,
    evidence TEXT,
    error TEXT,
    failures TEXT,
    classification TEXT NOT NULL,
    request TEXT,
    prompt TEXT NOT NULL,
    reasoning TEXT,
    reply TEXT,
    UNIQUE (lane, case_id, repeat)
) STRICT;

-- Cases that had begun and were given up.
CREATE TABLE aborted (
    lane INTEGER NOT NULL REFERENCES lanes(id) ON DELETE CASCADE,
    case_id TEXT NOT NULL,
    repeat INTEGER NOT NULL,
    reason TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    -- What the calls until then used.
    calls INTEGER NOT NULL DEFAULT 0,
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    cost_usd REAL NOT NULL DEFAULT 0.0,
    PRIMARY KEY (lane, case_id, repeat)
) STRICT, WITHOUT ROWID;

-- The questions of cases that ask several.
CREATE TABLE asked (
    result INTEGER NOT NULL REFERENCES results(id) ON DELETE CASCADE,
    place INTEGER NOT NULL,
    role TEXT NOT NULL,
    backend TEXT NOT NULL,
    system INTEGER REFERENCES texts(id),
    prompt TEXT NOT NULL,
    reply TEXT,
    error TEXT,
    model TEXT,
    source TEXT NOT NULL,
    latency_ms INTEGER NOT NULL,
    input_tokens INTEGER,
    output_tokens INTEGER,
    cached_tokens INTEGER,
    cost_usd REAL,
    calls INTEGER NOT NULL,
    request TEXT,
    usage_estimated INTEGER NOT NULL DEFAULT 0,
    -- What a conversation is made of.
    turn INTEGER,
    tool_calls TEXT,
    reasoning TEXT,
    stop_reason TEXT,
    logprobs TEXT,
    PRIMARY KEY (result, place)
) STRICT, WITHOUT ROWID;

-- Every check of a result: which assertion fails most is a query.
CREATE TABLE scores (
    result INTEGER NOT NULL REFERENCES results(id) ON DELETE CASCADE,
    place INTEGER NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    value REAL,
    passed INTEGER NOT NULL,
    weight REAL NOT NULL,
    reason TEXT,
    span_start INTEGER,
    span_end INTEGER,
    -- 1: a scorer gave the score its name.
    named INTEGER NOT NULL DEFAULT 0,
    -- What a scorer said on a scale of its own.
    said REAL,
    PRIMARY KEY (result, place)
) STRICT, WITHOUT ROWID;

-- How results came out can be counted, and pages of them found, without reading their texts.
CREATE INDEX results_by_outcome
    ON results (lane, verdict, class, stale, case_id, repeat, cost_usd);

-- What people say of results stands apart from what was measured. It is about a reply, not about a row: a case that is asked again gets
-- another row, and may get another reply.
CREATE TABLE remarks (
    id INTEGER PRIMARY KEY,
    lane INTEGER NOT NULL REFERENCES lanes(id) ON DELETE CASCADE,
    case_id TEXT NOT NULL,
    repeat INTEGER NOT NULL,
    reply BLOB NOT NULL,
    person TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    matter TEXT NOT NULL,
    -- The criterion or the tag; empty for other matters.
    about TEXT NOT NULL,
    -- Null if the person takes back what they said.
    value TEXT,
    -- The run that it was said of, where its result was judged again in this one.
    carried_from TEXT
) STRICT;
CREATE INDEX remarks_by_result ON remarks (lane, case_id, repeat);

-- Which runs have a tag is known without reading their results.
CREATE TABLE lane_tags (
    lane INTEGER NOT NULL REFERENCES lanes(id) ON DELETE CASCADE,
    tag TEXT NOT NULL,
    PRIMARY KEY (lane, tag)
) STRICT, WITHOUT ROWID;
CREATE INDEX lane_tags_by_tag ON lane_tags (tag, lane);

-- How the workers of a run stood when they were last looked at.
CREATE TABLE crews (
    run INTEGER PRIMARY KEY REFERENCES runs(id) ON DELETE CASCADE,
    at_ms INTEGER NOT NULL,
    crew TEXT NOT NULL
) STRICT;
