"""Texts that try to run in a browser, in every place that a model, a dataset or a server can set."""

import json
import sqlite3
import subprocess
import urllib.parse
import urllib.request

# What would call `pwned` if it ever became more than text.
RUNS = [
    "<script>pwned()</script>",
    "<img src=x onerror=pwned()>",
    "<svg onload=pwned()>",
    "<svg><script>pwned()</script></svg>",
    "<iframe srcdoc='<script>parent.pwned()</script>'></iframe>",
    "<details open ontoggle=pwned()>x</details>",
    "<input autofocus onfocus=pwned()>",
    "<a href=\"javascript:pwned()\">click</a>",
    "<math><mtext><table><mglyph><style><img src=x onerror=pwned()>",
    "<video><source onerror=pwned()></video>",
    "<object data=\"javascript:pwned()\"></object>",
    "<form action=\"javascript:pwned()\"><button>go</button></form>",
    "<meta http-equiv=refresh content=\"0;url=javascript:pwned()\">",
    "<base href=\"http://elsewhere.test/\">",
    "<link rel=stylesheet href=\"http://elsewhere.test/x.css\">",
    "<style>@import 'http://elsewhere.test/y.css'; body { display: none }</style>",
    "\" onmouseover=pwned() autofocus onfocus=pwned() x=\"",
    "' onpointerenter=pwned() tabindex=0 autofocus onfocus=pwned() x='",
    "{{constructor.constructor('pwned()')()}}${pwned()}",
    "&lt;script&gt;pwned()&lt;/script&gt;&#60;img src=x onerror=pwned()&#62;",
]
# What would have to be left first.
LEAVES = ["", "\">", "'>", "</title>", "</textarea>", "</script>", "--><!-->", "]]>", "</style></pre></code>", "\u2028\x00data: x\n\nevent: end\n"]
PAYLOADS = [f"{leave}{runs} #{at}" for at, (leave, runs) in enumerate((leave, runs) for runs in RUNS for leave in LEAVES)]
assert len(PAYLOADS) == 200

# What the pages themselves never have.
INTRUDERS = """() => {
  const bad = [];
  const ours = 'main script[src="/assets/live.js"]';
  for (const it of document.querySelectorAll("main script, img, iframe, object, embed, video, math, base, meta[http-equiv], style, link[href^=http]"))
    if (!it.matches(ours)) bad.push(it.outerHTML.slice(0, 200));
  for (const it of document.querySelectorAll("*"))
    for (const { name, value } of it.attributes)
      if (name.startsWith("on") || /^\\s*javascript:/i.test(value)) bad.push(`${name}=${value} on ${it.tagName}`);
  if (window.wasPwned) bad.push("it ran");
  return bad;
}"""


def toml(text):
    return json.dumps(text.replace("\x00", ""))


def names(with_commas):
    """What may be a name: it has no comma, and no line is broken."""
    return [it.replace("\n", " ").replace("\x00", "").replace("," if not with_commas else "\x00", ";") for it in PAYLOADS]


def write(work):
    """Suites whose every text is one of these."""
    with open(f"{work}/x.jsonl", "w") as out:
        for at, text in enumerate(PAYLOADS):
            plain = text.replace("\x00", "")
            asked = f"{{% raw %}}{plain}{{% endraw %}}"
            case = {"id": f"hostile/{at:03}", "prompt": asked, "tags": [plain, f"tag {at}"], "notes": plain, "difficulty": plain, "system": asked,
                    "assert": [{"type": "contains", "value": asked + ("" if at % 2 else " not there"), "metric": plain}]}
            # A category has at most 100 characters, all of which can be seen.
            case["category"] = "".join(it for it in plain if it.isprintable())[:100]
            if at % 4 == 1:
                case["assert"].append({"type": "llm-rubric", "value": asked, "metric": "judged " + plain})
            out.write(json.dumps(case) + "\n")
    judge = """import json, sys
text = sys.stdin.read()
texts = json.load(open(sys.argv[1]))
text = next((it for it in texts if it in text), texts[0])
print(json.dumps({"criteria": [{"name": "rubric", "score": 2, "reason": text}]}))
"""
    failing = """import sys
text = sys.stdin.read()
sys.stderr.write(text)
sys.exit(1 + len(text) % 3)
"""
    for name, text in (("judge.py", judge), ("failing.py", failing), ("texts.json", json.dumps([it.replace("\x00", "") for it in PAYLOADS]))):
        with open(f"{work}/{name}", "w") as out:
            out.write(text)
    with open(f"{work}/x-cases.toml", "w") as out:
        out.write(f'''version = "1"
[backends.echo]
kind = "echo"
model = {toml(PAYLOADS[0])}
[backends.failing]
kind = "command"
command = ["python3", "{work}/failing.py"]
[backends.judge]
kind = "command"
command = ["python3", "{work}/judge.py", "{work}/texts.json"]
[[runners]]
name = "texts"
dataset = "x.jsonl"
backends = ["echo", "failing"]
judge = "judge"
''')
    with open(f"{work}/one.jsonl", "w") as out:
        out.write(json.dumps({"id": "one", "prompt": "one", "expected_response": "one"}) + "\n")
    with open(f"{work}/x-backends.toml", "w") as out:
        out.write('version = "1"\n')
        for name in names(False):
            out.write(f"[backends.{toml(name)}]\nkind = \"echo\"\nmodel = {toml(name)}\n")
        out.write('[[runners]]\nname = "names"\ndataset = "one.jsonl"\n')
    with open(f"{work}/x-runners.toml", "w") as out:
        out.write('version = "1"\n[backends.echo]\nkind = "echo"\n')
        for at, name in enumerate(names(False)):
            out.write(f"[[runners]]\nname = {toml(name)}\ndataset = \"one.jsonl\"\n")
    # What is wrong in a file is shown in its place.
    with open(f"{work}/x-broken.jsonl", "w") as out:
        for at, text in enumerate(PAYLOADS):
            plain = text.replace("\x00", "").replace("\n", " ")
            out.write(json.dumps({"id": plain, "prompt": plain, plain: plain, "assert": [{"type": plain}]}) + "\n")
            out.write(plain + "\n")
    with open(f"{work}/x-broken.toml", "w") as out:
        out.write('version = "1"\n[backends.echo]\nkind = "echo"\n[[runners]]\nname = "broken"\ndataset = "x-broken.jsonl"\n')
    with open(f"{work}/x-unread.toml", "w") as out:
        out.write("version = \"1\"\n" + "".join(f"[backends.b{at}]\nkind = {toml(it)}\n" for at, it in enumerate(PAYLOADS)))


def run(probity, work):
    store = ["--store", f"{work}/x.db"]
    for suite in ("x-cases", "x-backends", "x-runners"):
        ran = subprocess.run([probity, "run", f"{work}/{suite}.toml", *store, "-q", "--informational", "--no-fail-fast", "--max-retries", "0"],
                             capture_output=True, text=True)
        if ran.returncode not in (0, 3):
            raise SystemExit(f"view-browser-test: {suite} cannot be run: {ran.stderr[:2000]}")
    # Some texts are not taken from files of suites. They may stand in a store that came from elsewhere.
    with sqlite3.connect(f"{work}/x.db") as store:
        lanes = store.execute("SELECT l.id FROM lanes l JOIN runs r ON r.id = l.run WHERE r.suite = 'x-runners.toml' ORDER BY l.id").fetchall()
        for (lane,), text in zip(lanes, PAYLOADS, strict=True):
            store.execute("UPDATE lanes SET variant = ?1, info = json_set(info, '$.variant', ?1), sum = NULL WHERE id = ?2", (text, lane))
        kept = store.execute("SELECT started_ms, finished_ms, status, info FROM runs ORDER BY id LIMIT 1").fetchone()
        broken = [json.dumps(json.loads(kept[3]) | {"suite_path": f"{work}/{it}.toml"}) for it in ("x-broken", "x-unread")]
        for at, text in enumerate(PAYLOADS):
            info = broken[at] if at < 2 else json.dumps(json.loads(kept[3]) | {"suite_path": f"/nowhere/{text}"})
            store.execute("INSERT INTO runs (run_id, suite, started_ms, finished_ms, status, info) VALUES (?, ?, ?, ?, ?, ?)",
                          (f"20200101-000000-{at:06x}", text, *kept[:3], info))


def every_page(base):
    """The addresses of all pages."""
    def get(path):
        return json.load(urllib.request.urlopen(base + path))
    runs = []
    after = ""
    while after is not None:
        page = get(f"/api/v1/runs?limit=150{after}")
        runs += page["runs"]
        after = f"&after={page['next']}" if page["next"] else None
    def named(suite):
        return next(it["run_id"] for it in runs if it["suite"] == suite)
    def quoted(text):
        return urllib.parse.quote(text, safe="")
    texts = named("x-cases.toml")
    for limit in ("/?limit=150", f"/?limit=150&after=60"):
        yield limit
    for suite in ("x-cases.toml", "x-backends.toml", "x-runners.toml"):
        yield f"/runs/{named(suite)}"
        yield f"/runs/{named(suite)}/cases?limit=250"
        yield f"/runs/{named(suite)}/grid?limit=100"
        yield f"/trends?suite={quoted(suite)}"
    yield f"/compare?runs={texts}@echo,{texts}@failing"
    after = ""
    while after is not None:
        page = get(f"/api/v1/runs/{texts}/cases?limit=250&lane=1{after}")
        for case in page["cases"]:
            yield f"/runs/{texts}/cases/{quoted(case['case_id'])}?lane=1"
            if case["lane"] == 1 and hash(case["case_id"]) % 2:
                yield f"/runs/{texts}/cases/{quoted(case['case_id'])}?lane=2"
        after = f"&after={page['next']}" if page["next"] else None
    for text in PAYLOADS[::4]:
        yield f"/?q={quoted(text.replace(chr(0), ''))}"
        yield f"/runs/{texts}/cases?tag={quoted(text.replace(chr(0), ''))}"
        yield f"/trends?suite={quoted(text.replace(chr(0), ''))}"
    yield "/suites"
    for suite in get("/api/v1/suites")["suites"]:
        if suite["file"]:
            yield f"/suites/{quoted(suite['file'])}"
            if suite["state"] in ("read", "reading"):
                yield f"/doctor?suite={quoted(suite['file'])}"


def check_all(page, base, check):
    page.add_init_script("window.pwned = () => { window.wasPwned = true; };")
    seen = 0
    for path in every_page(base):
        page.goto(base + path, wait_until="domcontentloaded")
        if page.locator("[data-reload]").count():
            page.wait_for_selector("html:not(:has([data-reload]))", state="attached", timeout=60_000)
        found = page.evaluate(INTRUDERS)
        check(not found, f"{path} is text and nothing else: {found[:3]}")
        seen += 1
    return seen
