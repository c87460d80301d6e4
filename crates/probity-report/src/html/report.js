"use strict";
// Reads the island, then shows a page of the table and one case at a time. Texts of cases are
// set as text and never as markup. The state is in the address, so that it can be sent around.
(() => {
  const $ = (id) => document.getElementById(id);
  const island = $("data");
  const data = JSON.parse(island.textContent);
  island.remove();
  const { lanes, cases, systems, cap } = data;
  const PAGE = 100;
  const FILTERS = ["verdict", "class", "lane", "category", "tag"];
  const SORTS = ["verdict", "id", "lane", "class", "category", "reason", "ms", "tokens", "cost"];
  const ORDER = { error: 0, fail: 1, pass: 2 };
  const numbers = new Intl.NumberFormat("en");
  const collator = new Intl.Collator("en", { numeric: true });

  cases.forEach((it, at) => {
    it.at = at;
    it.tags = it.tags || [];
    it.tokens = (it.in || 0) + (it.out || 0);
    // What gates count: with `min_pass` the verdict of the case.
    it.counted ??= it.verdict;
    it.key = `${it.lane + 1}.${it.repeat}.${it.id}`;
  });
  const byKey = new Map(cases.map((it) => [it.key, it]));

  // ---- State: filters, order, page and the case that is open.
  const state = { q: "", sort: "", down: false, page: 0, open: null };
  FILTERS.forEach((name) => (state[name] = ""));
  let found = cases;

  const readAddress = () => {
    const asked = new URLSearchParams(location.hash.slice(1));
    state.q = asked.get("q") || "";
    FILTERS.forEach((name) => (state[name] = asked.get(name) || ""));
    const sort = asked.get("sort") || "";
    state.down = sort.startsWith("-");
    state.sort = SORTS.includes(sort.replace("-", "")) ? sort.replace("-", "") : "";
    state.page = Math.max(0, (parseInt(asked.get("page"), 10) || 1) - 1);
    const key = asked.get("case");
    state.open = key === null ? null : byKey.get(key) || cases.find((it) => it.id === key) || null;
  };

  const address = (opened) => {
    const asked = new URLSearchParams();
    if (state.q) asked.set("q", state.q);
    FILTERS.forEach((name) => state[name] && asked.set(name, state[name]));
    if (state.sort) asked.set("sort", (state.down ? "-" : "") + state.sort);
    if (state.page) asked.set("page", state.page + 1);
    if (opened) asked.set("case", opened.key);
    return `#${asked}`;
  };

  const writeAddress = () => history.replaceState(null, "", address(state.open));

  // ---- Texts.
  // The same as `probity_core::visible::is_hidden`.
  const HIDDEN = /(?![\n\t\ufe0e\ufe0f])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}]/gu;
  const named = (c) => (c === "\r" ? "\\r" : `U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`);
  const line = (text, most) => {
    const cut = text.length > most * 2 ? text.slice(0, most * 2) : text;
    return cut.replace(/\s+/g, " ").trim().replace(HIDDEN, named).slice(0, most);
  };
  const make = (name, className, text) => {
    const node = document.createElement(name);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    return node;
  };
  // A text with what cannot be seen made visible.
  const fill = (node, text) => {
    let from = 0;
    for (const match of text.matchAll(HIDDEN)) {
      node.append(text.slice(from, match.index), make("span", "ctl", named(match[0])));
      from = match.index + match[0].length;
    }
    node.append(text.slice(from));
    return node;
  };
  const time = (ms) => (ms < 10000 ? `${numbers.format(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);
  const dollars = (cost) => `$${cost.toFixed(cost < 0.01 ? 5 : 4)}`;

  // ---- Filters and order.
  const haystack = (it) => {
    it.hay ??= [it.id, it.prompt, it.reply, it.reason, it.expected, it.model].join("\n").toLowerCase();
    return it.hay;
  };
  const select = () => {
    const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
    found = cases.filter(
      (it) =>
        (!state.verdict || it.counted === state.verdict) &&
        (!state.class || it.class === state.class) &&
        (!state.lane || String(it.lane + 1) === state.lane) &&
        (!state.category || it.category === state.category) &&
        (!state.tag || it.tags.includes(state.tag)) &&
        words.every((word) => haystack(it).includes(word)),
    );
    const value = {
      verdict: (it) => ORDER[it.counted],
      lane: (it) => it.lane,
      reason: (it) => it.reason || it.prompt || "",
      cost: (it) => it.cost ?? -1,
    }[state.sort] || ((it) => it[state.sort] ?? "");
    // Without an order: what did not pass first, else as the run has it.
    const compare = state.sort
      ? (a, b) => {
          const [x, y] = [value(a), value(b)];
          const by = typeof x === "number" && typeof y === "number" ? x - y : collator.compare(x, y);
          return (state.down ? -by : by) || a.at - b.at;
        }
      : (a, b) => (a.counted === "pass") - (b.counted === "pass") || a.at - b.at;
    found.sort(compare);
    state.page = Math.min(state.page, Math.max(0, Math.ceil(found.length / PAGE) - 1));
  };

  // ---- The table.
  const cell = (row, name, text) => {
    const node = make("td", `c-${name}`, text);
    row.append(node);
    return node;
  };
  const rowOf = (it) => {
    const row = make("tr");
    row.dataset.at = it.at;
    row.tabIndex = -1;
    if (it === state.open) row.setAttribute("aria-current", "true");
    const verdict = cell(row, "verdict");
    verdict.append(make("span", `pill ${it.verdict}`, it.verdict));
    if (it.counted !== it.verdict) verdict.append(make("span", "sub-mark", `case: ${it.counted}`));
    const id = cell(row, "id");
    const link = make("a", "", line(it.id, 120));
    link.href = address(it);
    link.tabIndex = -1;
    id.dir = "auto";
    id.title = line(it.id, 300);
    id.append(link);
    if (it.repeat) id.append(make("span", "sub-mark", `repeat ${it.repeat}`));
    if (it.known) id.append(make("span", "sub-mark", "known"));
    cell(row, "lane", lanes[it.lane].title).dir = "auto";
    cell(row, "class", it.class).prepend(make("span", `dot ${it.class}`));
    cell(row, "category", line(String(it.category ?? ""), 40));
    cell(row, "reason", line(it.reason || it.prompt || "", 240)).dir = "auto";
    cell(row, "ms", time(it.ms));
    cell(row, "tokens", it.tokens ? numbers.format(it.tokens) : "");
    cell(row, "cost", it.cost === undefined ? "" : dollars(it.cost));
    return row;
  };
  const showTable = () => {
    const from = state.page * PAGE;
    const shown = found.slice(from, from + PAGE);
    $("rows").replaceChildren(...shown.map(rowOf));
    if (shown.length) $("rows").firstElementChild.tabIndex = 0;
    $("none").hidden = found.length > 0;
    const all = numbers.format(cases.length);
    const results = cases.length === 1 ? "result" : "results";
    $("count").textContent = found.length === cases.length ? `${all} ${results}` : `${numbers.format(found.length)} of ${all} ${results}`;
    $("pager").hidden = found.length <= PAGE;
    const pages = Math.ceil(found.length / PAGE);
    $("page").textContent = `${numbers.format(from + 1)}–${numbers.format(from + shown.length)} of ${numbers.format(found.length)}`;
    $("first").disabled = $("back").disabled = state.page === 0;
    $("next").disabled = $("last").disabled = state.page >= pages - 1;
    document.querySelectorAll("#table th").forEach((head) => {
      const sorted = head.dataset.key === state.sort;
      if (sorted) head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
  };
  const showControls = () => {
    if ($("q").value !== state.q) $("q").value = state.q;
    FILTERS.forEach((name) => {
      $(name).value = state[name];
      $(name).classList.toggle("set", state[name] !== "");
    });
  };
  const refresh = () => {
    select();
    turnToOpen();
    showControls();
    showTable();
  };
  const change = (edit) => {
    edit();
    state.page = 0;
    refresh();
    writeAddress();
  };
  const turn = (page) => {
    state.page = page;
    showTable();
    writeAddress();
    $("cases").scrollIntoView({ block: "start" });
  };

  // ---- One case.
  const section = (body, title, text, tone) => {
    if (text === undefined || text === null) return;
    body.append(make("h3", "", title), fill(make("pre", tone || ""), text));
    body.lastElementChild.dir = "auto";
  };
  const tree = (value) => {
    if (value === null || typeof value !== "object") return fill(make("span"), String(value));
    const list = make("dl", "tree");
    for (const [name, inner] of Object.entries(value)) {
      const plain = Array.isArray(inner) && inner.every((it) => typeof it !== "object");
      const shown = make("dd");
      const numbers = plain && inner.every((it) => typeof it === "number");
      if (plain) fill(shown, inner.join(numbers ? ", " : "\n"));
      else shown.append(tree(inner));
      list.append(make("dt", "", Array.isArray(value) ? String(Number(name) + 1) : name.replaceAll("_", " ")), shown);
    }
    return list;
  };
  const facts = (it) => {
    const list = make("dl", "facts");
    const rows = [
      ["Lane", lanes[it.lane].title],
      ["Model", it.model || lanes[it.lane].model],
      ["Latency", time(it.ms)],
      ["First token", it.ttft === undefined ? undefined : time(it.ttft)],
      ["Tokens/s", it.speed === undefined ? undefined : it.speed.toFixed(1)],
      ["With waits", it.elapsed !== it.ms ? time(it.elapsed) : undefined],
      ["Calls", it.calls],
      ["Tokens", it.tokens ? `${numbers.format(it.in || 0)} in, ${numbers.format(it.out || 0)} out` : undefined],
      ["Cost", it.cost === undefined ? undefined : dollars(it.cost)],
      ["Answered by", it.source],
      ["Stopped by", it.stop],
      ["Began", it.started.replace("T", " ").replace("Z", " UTC")],
    ];
    for (const [name, value] of rows) {
      if (value === undefined || value === null) continue;
      const fact = make("div");
      fact.append(make("dt", "", name), fill(make("dd"), line(String(value), 300)));
      list.append(fact);
    }
    return list;
  };
  const attempts = (body, it) => {
    if (!it.failures) return;
    const table = make("table");
    const head = make("tr");
    ["Try", "Error", "What was said", "Took", "Then"].forEach((name) => head.append(make("th", "", name)));
    table.append(head);
    for (const failed of it.failures) {
      const row = make("tr");
      const { error } = failed;
      if (!error) continue;
      const codes = [error.kind, error.status && `HTTP ${error.status}`, error.exit_code !== undefined && `exit ${error.exit_code}`, error.signal];
      row.append(
        make("td", "", failed.attempt),
        fill(make("td"), codes.filter(Boolean).join(", ")),
        fill(make("td"), error.message || ""),
        make("td", "tight", time(failed.latency_ms)),
        make("td", "tight", failed.retry_in_ms === undefined ? "gave up" : `waited ${time(failed.retry_in_ms)}`),
      );
      table.append(row);
    }
    body.append(make("h3", "", it.failures.length === 1 ? "1 failed try" : `${it.failures.length} failed tries`), table);
  };
  const talk = (body, said) => {
    body.append(make("h3", "", "Conversation"));
    const list = make("div", "talk");
    for (const it of said) {
      const turn = make("div", it.role);
      turn.append(make("b", "", it.role));
      if (it.reasoning) {
        const fold = make("details");
        fold.append(make("summary", "", "Reasoning"), fill(make("pre"), it.reasoning));
        turn.append(fold);
      }
      turn.append(fill(make("pre"), it.text));
      list.append(turn);
    }
    body.append(list);
  };
  const showCase = () => {
    const panel = $("detail");
    const it = state.open;
    document.querySelectorAll("#rows tr").forEach((row) => {
      if (it && Number(row.dataset.at) === it.at) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
    });
    panel.hidden = !it;
    if (!it) return panel.replaceChildren();
    const top = make("div", "d-top");
    const title = make("div");
    const name = fill(make("h2"), it.id);
    name.id = "detail-title";
    const tags = make("div", "d-tags");
    const kind = make("span", "", it.class);
    kind.prepend(make("span", `dot ${it.class}`));
    tags.append(make("span", `pill ${it.verdict}`, it.verdict), kind);
    if (it.counted !== it.verdict) tags.append(make("span", "", `the case counts as ${it.counted}`));
    if (it.repeat) tags.append(make("span", "", `repeat ${it.repeat}`));
    if (it.known) tags.append(make("span", "", "known to fail"));
    [it.category, ...it.tags].filter(Boolean).forEach((tag) => tags.append(fill(make("span", "tag"), line(String(tag), 60))));
    title.append(name, tags);
    const nav = make("div", "d-nav");
    const at = found.indexOf(it);
    for (const [text, label, to] of [["‹", "Previous case", at - 1], ["›", "Next case", at + 1]]) {
      const button = make("button", "", text);
      button.type = "button";
      button.setAttribute("aria-label", label);
      button.disabled = at < 0 || !found[to];
      button.addEventListener("click", () => open(found[to]));
      nav.append(button);
    }
    const close = make("button", "", "✕");
    close.type = "button";
    close.setAttribute("aria-label", "Close");
    close.addEventListener("click", () => open(null));
    nav.append(close);
    top.append(title, nav);

    const body = make("div", "d-body");
    body.append(facts(it));
    if (it.reason && it.reason !== it.reply) section(body, "Why", it.reason, "bad");
    if (it.conversation) talk(body, it.conversation);
    else section(body, "Prompt", it.prompt);
    const pair = make("div", it.expected !== undefined && it.reply !== undefined ? "pair" : "");
    const left = make("div");
    const right = make("div");
    section(left, "Expected", it.expected, "good");
    section(right, "Reply", it.reply, it.verdict === "pass" ? "good" : "bad");
    pair.append(left, right);
    body.append(pair);
    const { command, ...rest } = it.evidence || {};
    if (command) body.append(make("h3", "", "Command"), tree(command));
    if (it.error) body.append(make("h3", "", "Error"), tree(it.error));
    attempts(body, it);
    if (Object.keys(rest).length || it.rule) {
      body.append(make("h3", "", "Evidence"), tree({ ...(it.rule ? { rule: it.rule } : {}), ...rest }));
    }
    const system = typeof it.system === "number" ? systems[it.system] : it.system;
    if (system !== undefined) {
      const fold = make("details");
      fold.append(make("summary", "", "System prompt"), fill(make("pre"), system));
      body.append(fold);
    }
    for (const asked of it.asked || []) {
      const fold = make("details");
      const who = [asked.backend, asked.model, asked.source].filter(Boolean).join(", ");
      fold.append(fill(make("summary"), line(`Asked: ${asked.role} (${who})`, 160)));
      const own = typeof asked.system === "number" ? systems[asked.system] : asked.system;
      section(fold, "System prompt", own);
      section(fold, "Prompt", asked.prompt);
      section(fold, "Reply", asked.reply);
      section(fold, "Error", asked.error, "bad");
      body.append(fold);
    }
    section(body, "Notes", it.notes);
    panel.replaceChildren(top, body);
    panel.scrollTop = 0;
    panel.focus({ preventScroll: true });
  };
  const turnToOpen = () => {
    const at = state.open ? found.indexOf(state.open) : -1;
    if (at >= 0) state.page = Math.floor(at / PAGE);
  };
  const open = (it) => {
    const before = state.open;
    state.open = it;
    const page = state.page;
    turnToOpen();
    if (page !== state.page) showTable();
    // The first case that is opened can be left by going back.
    if (it && !before) history.pushState(null, "", address(it));
    else writeAddress();
    showCase();
    if (!it && before) focusRow(rowFor(before));
  };

  // ---- Keys and clicks.
  const rowFor = (it) => $("rows").querySelector(`tr[data-at="${it.at}"]`);
  const focusRow = (row) => {
    if (!row) return;
    $("rows").querySelectorAll("tr[tabindex='0']").forEach((other) => (other.tabIndex = -1));
    row.tabIndex = 0;
    row.focus();
  };
  const step = (by) => {
    const at = found.indexOf(state.open) + by;
    if (state.open && found[at]) open(found[at]);
  };
  const onKey = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    const row = event.target.closest?.("#rows tr");
    const moves = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" };
    if (event.key === "Escape") {
      if (state.open) open(null);
      else if (typing) event.target.blur();
    } else if (typing) {
      return;
    } else if (event.key === "/") {
      $("q").focus();
      $("q").select();
    } else if (row && moves[event.key]) {
      focusRow(row[moves[event.key]]);
    } else if (row && (event.key === "Home" || event.key === "End")) {
      focusRow(event.key === "Home" ? $("rows").firstElementChild : $("rows").lastElementChild);
    } else if (row && event.key === "Enter") {
      open(cases[row.dataset.at]);
    } else if (state.open && (event.key === "ArrowLeft" || event.key === "ArrowRight")) {
      step(event.key === "ArrowLeft" ? -1 : 1);
    } else {
      return;
    }
    event.preventDefault();
  };

  const choices = (name, counts, label) => {
    $(name).hidden = counts.size < (name === "tag" ? 1 : 2);
    for (const [value, count] of counts) {
      const option = make("option", "", `${line(label(value), 60)} (${numbers.format(count)})`);
      option.value = value;
      $(name).append(option);
    }
  };
  const tally = (values) => {
    const counts = new Map();
    cases.forEach((it) => values(it).forEach((value) => counts.set(value, (counts.get(value) || 0) + 1)));
    return new Map([...counts].sort((a, b) => collator.compare(a[0], b[0])));
  };

  const start = () => {
    const same = (value) => value;
    choices("verdict", tally((it) => [it.counted]), same);
    choices("class", tally((it) => [it.class]), same);
    choices("lane", tally((it) => [String(it.lane + 1)]), (value) => lanes[value - 1].title);
    const categories = tally((it) => (it.category ? [it.category] : []));
    choices("category", categories, same);
    choices("tag", tally((it) => it.tags.filter((tag) => typeof tag === "string")), same);
    $("table").classList.toggle("no-category", categories.size === 0);
    $("table").classList.toggle("no-tokens", !cases.some((it) => it.tokens));
    $("table").classList.toggle("no-cost", !cases.some((it) => it.cost !== undefined));
    document.querySelectorAll("#table th").forEach((head) => {
      const button = make("button", "", head.textContent);
      button.type = "button";
      head.replaceChildren(button);
      button.addEventListener("click", () =>
        change(() => {
          const again = state.sort === head.dataset.key;
          const numeric = ["ms", "tokens", "cost"].includes(head.dataset.key);
          state.down = again ? !state.down : numeric;
          state.sort = head.dataset.key;
        }),
      );
    });
    let waiting = 0;
    $("q").addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => change(() => (state.q = $("q").value)), 120);
    });
    FILTERS.forEach((name) => $(name).addEventListener("change", () => change(() => (state[name] = $(name).value))));
    $("filters").addEventListener("submit", (event) => event.preventDefault());
    $("clear").addEventListener("click", () =>
      change(() => {
        state.q = state.sort = "";
        state.down = false;
        FILTERS.forEach((name) => (state[name] = ""));
      }),
    );
    $("first").addEventListener("click", () => turn(0));
    $("back").addEventListener("click", () => turn(state.page - 1));
    $("next").addEventListener("click", () => turn(state.page + 1));
    $("last").addEventListener("click", () => turn(Math.ceil(found.length / PAGE) - 1));
    $("rows").addEventListener("click", (event) => {
      const row = event.target.closest("tr");
      if (!row || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      focusRow(row);
      open(cases[row.dataset.at]);
    });
    document.addEventListener("keydown", onKey);
    const follow = () => {
      readAddress();
      refresh();
      showCase();
    };
    addEventListener("hashchange", () => {
      // The skip link only moves.
      if (location.hash === "#cases") return;
      const before = state.open;
      follow();
      if (before && !state.open) focusRow(rowFor(before));
      else if (!state.open) $("cases").scrollIntoView({ block: "start" });
    });

    const root = document.documentElement;
    const keep = (theme) => {
      try {
        localStorage.setItem("probity-theme", theme);
      } catch {
        // Pages from a disk may not keep anything; the choice then holds until the page is closed.
      }
    };
    let theme = null;
    try {
      theme = localStorage.getItem("probity-theme");
    } catch {
      theme = null;
    }
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    $("theme").addEventListener("click", () => {
      const dark = matchMedia("(prefers-color-scheme: dark)").matches;
      const now = root.dataset.theme || (dark ? "dark" : "light");
      root.dataset.theme = now === "dark" ? "light" : "dark";
      keep(root.dataset.theme);
    });
    $("theme").hidden = $("filters").hidden = false;
    follow();
    root.dataset.ready = cap;
  };
  start();
})();
