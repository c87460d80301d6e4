"""What scripts/view-browser-test does with the browser."""

import contextlib
import json
import os
import subprocess
import sys
import urllib.request
from urllib.parse import quote

import view_browser_xss
from playwright.sync_api import sync_playwright

probity, work, axe = sys.argv[1:]
HOSTILE = '<script>alert(1)</script><img src=http://x.example/y.png onerror=alert(2)> \u202egnp.exe \x1b[31m </pre></script>'
HOSTILE_NAME = '<b onclick=alert(3)>"B"</b>'
COMMANDS = ["ls -la", "find . -name '*.py' -mtime -1", "wc -l *.log", "du -s * | sort -rn | head -n 10",
            "tar -czf src.tar.gz src", "sed 's/foo/bar/g' file"]
troubles, requests = [], []
with open(axe) as source:
    AXE = source.read()


def check(claim, words):
    if not claim:
        sys.exit(f"view-browser-test: not so: {words}")


def write_suite():
    with open(f"{work}/commands.jsonl", "w") as out:
        for at in range(240):
            right = COMMANDS[at % 6]
            case = {"id": f"command-{at:04}", "prompt": right, "expected_command": right, "category": "correctness",
                    "safe": True, "posix_compliant": True, "tags": ["files", "basic"] if at % 2 else ["text"]}
            if at % 17 == 0:
                case["prompt"] = "ls -l | sort"
            elif at % 29 == 0:
                case["prompt"] = "I'm sorry, but I can't help with that."
            elif at % 7 == 0:
                case["category"] = "posix"
            out.write(json.dumps(case) + "\n")
    with open(f"{work}/answers.jsonl", "w") as out:
        for at in range(120):
            case = {"id": f"answer/{at:03}", "prompt": f"{at} is the number that you are looking for; say it again, with care.",
                    "tags": ["numbers"], "notes": HOSTILE,
                    "assert": [{"type": "contains", "value": str(at)}, {"type": "contains", "value": "care", "metric": "manners"}]}
            if at % 13 == 0:
                case["assert"].append({"type": "contains", "value": "something else", "metric": "relevance"})
            if at == 5:
                case |= {"id": "hostile/@someone#1", "prompt": HOSTILE, "tags": [HOSTILE]}
            out.write(json.dumps(case) + "\n")
    with open(f"{work}/shell-assistant.toml", "w") as out:
        out.write('''version = "1"
[backends.large]
kind = "echo"
[backends.small]
kind = "command"
command = ["sed", "s/-la/-l/;s/looking for/after/"]
[[runners]]
name = "commands"
kind = "command"
dataset = "commands.jsonl"
[[runners]]
name = "answers"
dataset = "answers.jsonl"
[runners.gates]
pass_rate = 0.95
''')
    # Slow enough to be looked at while it goes on.
    with open(f"{work}/slow.jsonl", "w") as out:
        for at in range(60):
            case = {"id": f"capital-{at:02}", "prompt": f"word {at}", "expected_response": f"word {at}"}
            if at % 9 == 4:
                case["prompt"] = "I'm sorry, but I can't help with that."
            elif at % 7 == 3:
                case["expected_response"] = "another word"
            out.write(json.dumps(case) + "\n")
    with open(f"{work}/slow.toml", "w") as out:
        out.write('''version = "1"
[backends.large]
kind = "command"
command = ["sh", "-c", "sleep 0.2; cat"]
[backends.small]
kind = "command"
command = ["sh", "-c", "sleep 0.3; sed s/word.1/no/"]
[[runners]]
name = "words"
dataset = "slow.jsonl"
''')


    with open(f"{work}/few.jsonl", "w") as out:
        out.write('{"id": "a", "prompt": "one", "expected_response": "one"}\n')
    with open(f"{work}/bad.toml", "w") as out:
        out.write('version = "1"\n[backends.echo]\nkind = "echo"\n[[runners]]\nname = "few"\ndataset = "few.jsonl"\n')


def write_bad():
    """What was sound when it was run, and has been changed since."""
    with open(f"{work}/few.jsonl", "w") as out:
        out.write('{"id": "a", "prompt": "list all files of the folder, hidden ones too", "expected_response": "one"}\n')
        out.write('{"id": "a", "prompt": "another prompt", "expected_response": "one"}\n')
        out.write('{"id": "b", "prompt": "list all files of the folder, hidden ones too", "expected_response": "one"}\n')
        out.write('{"id": "c", "promt": "count the lines", "assert": [{"type": "contians", "value": "x"}]}\n')
        out.write('{"id": "d", "prompt": "nobody says when this is right"}\n')


def run(suite, *options):
    subprocess.run([probity, "run", f"{work}/{suite}", "--store", f"{work}/v.db", "-q", "--informational", *options], check=True)


@contextlib.contextmanager
def served(*options, store="v.db"):
    command = [probity, "view", "--store", f"{work}/{store}", "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            yield server.stdout.readline().strip().rstrip("/")
        finally:
            server.terminate()


def latest(base):
    return json.load(urllib.request.urlopen(f"{base}/api/v1/runs?limit=1"))["runs"][0]


def watch(page, base):
    page.set_default_timeout(15_000)
    page.on_console = lambda it: troubles.append(f"{it.type}: {it.text}") if it.type in ("error", "warning") else None
    page.on("console", page.on_console)
    page.on("pageerror", lambda it: troubles.append(str(it)))
    page.on("dialog", lambda it: (troubles.append(f"dialog: {it.message}"), it.dismiss()))
    page.on("request", lambda it: requests.append(it.url) if not it.url.startswith(base) and it.url != "data:," else None)
    return page


def ready(page, address):
    page.goto(address)
    page.wait_for_selector("html[data-ready]", state="attached")


def use_runs(page, base):
    ready(page, f"{base}/")
    check(page.locator("table.runs tbody tr").count() == 5, "every run is listed")
    check(page.locator("button[data-needs]").is_disabled(), "nothing is ticked, so nothing is compared")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/*")
    check(page.locator(".standing").is_visible(), "the verdict is on top")
    page.go_back()
    for box in page.locator("table.runs input[type=checkbox]").all()[:2]:
        box.check()
    page.locator("button[data-needs]").click()
    page.wait_for_url("**/compare?run=*")
    check("judged in both" in page.locator("main").inner_text(), "ticked runs are compared")


def use_cases(page, base, run_id):
    here = f"{base}/runs/{run_id}/cases"
    ready(page, here)
    check(page.locator("#count").inner_text() == "720 results", "all results are counted")
    check(page.locator("#rows tr").count() == 100, "a page has 100 rows")
    check(page.locator("#rows .pill").first.inner_text() != "pass", "what did not pass comes first")
    page.locator("select[name=class]").select_option("refusal")
    page.wait_for_url("**class=refusal*")
    check(set(page.locator("#rows .c-class").all_inner_texts()) == {"refusal"}, "a class is chosen")
    check("q=" not in page.url, "what is not filled in is not in the address")
    page.reload()
    check(page.locator("select[name=class]").input_value() == "refusal", "a link brings the same filters")
    page.locator(".clear").click()
    page.wait_for_url(here)
    page.keyboard.press("/")
    page.keyboard.type("answer/042")
    page.keyboard.press("Enter")
    page.wait_for_url("**q=answer*")
    check(page.locator("#rows tr").count() == 2, "words are searched")
    ready(page, here)
    page.locator("th.c-ms a").click()
    page.wait_for_url("**sort=-latency*")
    check(page.locator("th.c-ms").get_attribute("aria-sort") == "descending", "the slowest come first")
    seen = page.locator("#rows .c-id a").first.get_attribute("href")
    page.locator(".pages a[rel=next]").click()
    page.wait_for_url("**after=*")
    check(page.locator("#rows .c-id a").first.get_attribute("href") != seen, "the next page is another one")
    page.locator(".pages a").first.click()
    page.wait_for_load_state()
    check(page.locator("#rows .c-id a").first.get_attribute("href") == seen, "and the first is the same again")
    page.locator("#rows tr").nth(2).locator(".c-reason").click()
    page.wait_for_url("**/cases/*")
    check(page.locator(".case-title h2").is_visible(), "a click on a row opens its case")


def use_case(page, base, run_id):
    ready(page, f"{base}/runs/{run_id}/cases/command-0017?lane=2")
    check("commands on small" in page.locator(".others a[aria-current]").inner_text(), "the lane is the one of the link")
    page.locator(".others a").first.click()
    page.wait_for_url("**lane=1")
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**/command-0018?lane=1")
    page.keyboard.press("ArrowLeft")
    page.wait_for_url("**/command-0017?lane=1")
    ready(page, f"{base}/runs/{run_id}/cases/hostile%2F%40someone%231")
    text = page.locator("main").inner_text()
    check("<script>alert(1)</script>" in text, "tags are shown")
    check("\\u{202e}" in text and "\\u{1b}" in text, "what cannot be seen is named")
    check(page.locator("main script, main img").count() == 0, "and nothing came of them")


def use_grid(page, base, run_id):
    ready(page, f"{base}/runs/{run_id}/grid")
    check(page.locator("table.answers tbody tr").count() == 25, "a page has 25 cases")
    page.locator("input[name=differing]").check()
    page.wait_for_url("**differing=1*")
    check(page.locator("table.answers mark").count() > 0, "differences are marked")


def use_themes(page, base):
    ready(page, f"{base}/")
    colour = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(colour)
    page.locator("#theme").click()
    check(page.evaluate(colour) != before, "the button switches between light and dark")
    page.reload()
    check(page.evaluate(colour) != before, "the choice is kept")
    page.locator("#theme").click()


def follow(page, base):
    command = [probity, "run", f"{work}/slow.toml", "--store", f"{work}/v.db", "-q", "--informational", "-j", "2"]
    with subprocess.Popen(command) as running:
        while latest(base)["status"] != "running":
            check(running.poll() is None, "the run is seen before it ends")
            page.wait_for_timeout(20)
        ready(page, f"{base}/runs/latest")
        page.wait_for_selector("#live[data-updates='8']", state="attached")
        page.screenshot(path=f"{work}/live.png")
        check(page.locator(".standing").count() == 0, "there is no verdict yet")
        check("of 120" in page.locator("#live").inner_text(), "progress is shown")
        page.wait_for_selector("#live", state="detached", timeout=60_000)
        check(running.wait() == 0, "the run came to its end")
    check(page.locator(".standing").is_visible(), "the verdict follows by itself")


def rate(browser, base, case, name, **settings):
    """Somebody says everything that can be said of a case, and sees it when they come back."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, **settings)
    page = watch(context.new_page(), base)
    page.goto(case)
    check(page.locator(".say-verdict").count() == 0, "who says something is asked first")
    page.locator("#your-name").fill(name)
    page.locator("#your-name").press("Enter")
    page.locator(".say-verdict button").first.wait_for()
    page.locator(".say-verdict button", has_text="Wrong").click()
    page.wait_for_selector(".say-verdict [aria-pressed=true]")
    page.locator(".say-points input[value='4']").first.focus()
    page.keyboard.press("Space")
    page.locator(".say-points button").press("Enter")
    page.wait_for_selector(".points-said")
    page.locator("#new-tag").fill(HOSTILE_NAME)
    page.keyboard.press("Enter")
    page.wait_for_selector(".say-untag")
    page.locator("#your-note").fill(f"{HOSTILE_NAME}\nsecond line")
    page.locator(".say-note button").click()
    page.wait_for_selector(".remark")
    page.goto(case)
    text = page.locator("#people").inner_text()
    for part in ("the verdict is wrong", HOSTILE_NAME, "second line", "Points of 5"):
        check(part in text, f"{part} is there after a reload: {text}")
    check(page.locator(".say-points input[value='4']").first.is_checked(), "and so are the points")
    check(page.locator("#people script, #people img").count() == 0, "nothing came of hostile texts")
    page.locator(".say-verdict button", has_text="Take back").click()
    page.wait_for_selector(".say-verdict [aria-pressed=true]", state="detached")
    page.locator(".say-untag button").click()
    page.wait_for_selector(".say-untag", state="detached")
    check("the verdict is wrong" not in page.locator("#people .said").inner_text(), "what is taken back is gone")
    page.locator(".history summary").click()
    check("took back the mark" in page.locator(".history").inner_text(), "and in the history")
    return context


def rate_all(browser, run_id):
    """Two raters, one of them without scripts and one in the dark; both then see how far they agree."""
    with served("--allow-edit") as base:
        case = f"{base}/runs/{run_id}/cases/answer%2F013"
        rate(browser, base, case, f"Ada {HOSTILE_NAME}", java_script_enabled=False).close()
        context = rate(browser, base, case, "Bob", color_scheme="dark")
        page = watch(context.new_page(), base)
        for at in (14, 15):
            page.goto(f"{base}/runs/{run_id}/cases/answer%2F0{at}")
            page.locator(".say-verdict button", has_text="Right").click()
            page.wait_for_selector(".say-verdict [aria-pressed=true]")
        page.goto(f"{base}/runs/{run_id}")
        text = page.locator(".people-of-run").inner_text()
        check("2 of 2 marks confirm the verdict" in text, f"a run tells what people said: {text}")
        agreed = page.locator(".agreements tbody tr").inner_text().split("\t")
        check(agreed[:4] == ["overall", f"Ada {HOSTILE_NAME}, Bob", "1", "100 %"], f"and how far they agree: {agreed}")
        state = context.storage_state()
        context.close()
        pictures(browser, base, {"rating": f"/runs/{run_id}/cases/answer%2F013", "rated": f"/runs/{run_id}"}, storage_state=state)
        check(json.load(urllib.request.urlopen(f"{base}/api/v1/runs/{run_id}/people"))["results"] == 3, "programs see it, too")


def check_access(page, where):
    """Whether people who do not see the page, or use no mouse, can use it, as far as axe can tell."""
    page.evaluate(AXE)
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")["violations"]
    bad = [f"{it['id']} ({it['impact']}): {it['nodes'][0]['html'][:160]} {it['nodes'][0].get('failureSummary', '')[:300]}"
           for it in found if it["impact"] in ("serious", "critical")]
    check(not bad, f"{where} can be used by everybody: {bad[:4]}")


def hostile(browser):
    view_browser_xss.write(work)
    view_browser_xss.run(probity, work)
    with served(store="x.db") as base:
        page = watch(browser.new_page(viewport={"width": 1280, "height": 900}), base)
        # Pages that are not there say so with their status.
        page.remove_listener("console", page.on_console)
        page.on("console", lambda it: troubles.append(f"{it.type}: {it.text}") if it.type == "error" and "404" not in it.text else None)
        seen = view_browser_xss.check_all(page, base, check)
        page.close()
    check(seen > 400, f"{seen} pages with hostile texts were looked at")
    return seen


def pictures(browser, base, pages, **settings):
    for name, path in pages.items():
        for width, height in ((1280, 900), (380, 800)):
            for scheme in ("light", "dark"):
                context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, **settings)
                page = watch(context.new_page(), base)
                ready(page, base + path)
                # A page that waits for a suite to be read loads itself again.
                page.wait_for_selector("[data-reload]", state="detached")
                page.wait_for_selector("html[data-ready]", state="attached")
                wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
                check(wide <= 0, f"{name} at {width}: nothing is wider than the screen ({wide} px)")
                check_access(page, f"{name} at {width}, {scheme}")
                page.screenshot(path=f"{work}/{name}-{width}-{scheme}.png", full_page=bool(settings))
                context.close()


def without_scripts(browser, base, pages):
    context = browser.new_context(java_script_enabled=False)
    page = watch(context.new_page(), base)
    for name, path in pages.items():
        page.goto(base + path)
        check(page.locator("main").inner_text().strip() != "", f"{name} can be read without a script")
    page.goto(f"{base}{pages['cases']}")
    page.locator("select[name=verdict]").select_option("fail")
    page.locator("#filters button").click()
    check("verdict=fail" in page.url, "filters work without a script")
    check(set(page.locator("#rows .pill").all_inner_texts()) == {"fail"}, "and filter")
    context.close()


def suite_page(name):
    return "/suites/" + quote(os.path.realpath(f"{work}/{name}"), safe="")


write_suite()
run("bad.toml")
write_bad()
for limit in (60, 120, 240):
    run("shell-assistant.toml", "--limit", str(limit))
run("shell-assistant.toml")
with served() as base, sync_playwright() as driver:
    browser = driver.chromium.launch(executable_path=os.environ["BROWSER"], args=["--no-sandbox"])
    run_id = latest(base)["run_id"]
    page = watch(browser.new_page(viewport={"width": 1280, "height": 900}), base)
    use_runs(page, base)
    use_cases(page, base, run_id)
    use_case(page, base, run_id)
    use_grid(page, base, run_id)
    use_themes(page, base)
    pages = {"runs": "/", "run": f"/runs/{run_id}", "cases": f"/runs/{run_id}/cases",
             "case": f"/runs/{run_id}/cases/command-0017?lane=1", "answer": f"/runs/{run_id}/cases/answer%2F013",
             "hostile": f"/runs/{run_id}/cases/hostile%2F%40someone%231", "grid": f"/runs/{run_id}/grid?differing=1",
             "compare": f"/compare?runs={run_id}@large,{run_id}@small", "trends": "/trends",
             "nothing": f"/runs/{run_id}/cases?q=nowhere", "suites": "/suites", "suite": suite_page("shell-assistant.toml"),
             "bad-suite": suite_page("bad.toml"), "doctor": "/doctor?suite=" + quote(f"{work}/shell-assistant.toml", safe="")}
    pictures(browser, base, pages)
    without_scripts(browser, base, pages)
    rate_all(browser, run_id)
    check("the verdict is wrong" not in page.goto(f"{base}{pages['answer']}").text(), "what was taken back is not shown")
    check(page.locator("#people").is_visible() and page.locator("#people form").count() == 0, "without the flag it can only be read")
    follow(page, base)
    check(not troubles, f"no errors and no warnings: {troubles[:5]}")
    # The one page that is meant to fail says so in the console.
    ready(page, f"{base}/runs/nowhere")
    page.screenshot(path=f"{work}/problem.png")
    check("there is no run" in page.locator("main").inner_text(), "what is not there is told")
    troubles.clear()
    seen = hostile(browser)
    check(not troubles, f"no errors and no warnings with hostile texts: {troubles[:5]}")
    browser.close()
check(not requests, f"no request leaves the site: {requests[:5]}")
print(f"the site works: runs, cases, case, grid, compare, trends, suites, doctor, live, ratings, keys, links, themes, no script, no network; "
      f"axe finds nothing serious; {len(view_browser_xss.PAYLOADS)} hostile texts stay texts on {seen} pages")
