"""What bench/view-scroll does with the browser."""

import json
import os
import subprocess
import sys
import time
import urllib.request

from playwright.sync_api import sync_playwright

probity, work, cases = sys.argv[1], sys.argv[2], int(sys.argv[3])
COLUMNS = 6
# Scrolls by less than a screen for each frame, and writes down how long each frame and each task took.
SCROLL = """async () => {
  const box = document.querySelector(".grid-scroll");
  const tasks = [];
  new PerformanceObserver((all) => all.getEntries().forEach((it) => tasks.push(it.duration))).observe({ type: "longtask" });
  const frame = () => new Promise(requestAnimationFrame);
  await frame();
  const gaps = [];
  let last = await frame();
  for (let at = 0; at < box.scrollHeight - box.clientHeight; at += 160) {
    box.scrollTop = at;
    const now = await frame();
    gaps.push(now - last);
    last = now;
  }
  return { gaps, tasks, height: box.scrollHeight };
}"""


def write():
    with open(f"{work}/cases.jsonl", "w") as out:
        for at in range(cases):
            words = " ".join(f"word{at * 7 % 97}" for _ in range(60))
            out.write(json.dumps({"id": f"case-{at:05}", "prompt": f"{at} {words}", "assert": [{"type": "contains", "value": str(at)}]}) + "\n")
    with open(f"{work}/probity.toml", "w") as out:
        out.write('version = "1"\n' + "".join(f'[backends.b{at}]\nkind = "echo"\n' for at in range(COLUMNS)))
        out.write('[[runners]]\nname = "answers"\ndataset = "cases.jsonl"\n')


def first_byte(address):
    begun = time.monotonic()
    with urllib.request.urlopen(address) as answer:
        answer.read(1)
        took = time.monotonic() - begun
        return took * 1000, len(answer.read()) + 1


write()
subprocess.run([probity, "run", f"{work}/probity.toml", "--store", f"{work}/v.db", "-q", "--informational"], check=True)
command = [probity, "view", "--store", f"{work}/v.db", "--port", "0"]
with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server, sync_playwright() as driver:
    try:
        base = server.stdout.readline().strip().rstrip("/")
        browser = driver.chromium.launch(executable_path=os.environ["BROWSER"], args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        worst = {"gap": 0.0, "task": 0.0, "frames": 0, "first": 0.0, "bytes": 0}
        middle, last = f"case-{cases // 2:05}", f"case-{max(cases - 101, 0):05}"
        for after in ("", f"&after={middle}", f"&after={last}"):
            address = f"{base}/runs/latest/grid?limit=100{after}"
            took, size = first_byte(address)
            page.goto(address)
            page.wait_for_selector("html[data-ready]", state="attached")
            seen = page.evaluate(SCROLL)
            worst["gap"] = max(worst["gap"], *seen["gaps"])
            worst["task"] = max([worst["task"], *seen["tasks"]])
            worst["frames"] += len(seen["gaps"])
            worst["first"] = max(worst["first"], took)
            worst["bytes"] = max(worst["bytes"], size)
        print(f"grid of {cases} cases x {COLUMNS} columns, its first, a middle and its last page: {worst['frames']} frames, "
              f"the longest after {worst['gap']:.0f} ms, the longest task {worst['task']:.0f} ms (0: none above 50 ms); "
              f"first byte after {worst['first']:.0f} ms, {worst['bytes'] // 1024} KiB at most")
        browser.close()
    finally:
        server.terminate()
