"""What scripts/docs-site does with the site: follows every link, and searches in a browser without a network."""

import os
import pathlib
import sys
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

from playwright.sync_api import sync_playwright

site, keep = pathlib.Path(sys.argv[1]), sys.argv[2]
SHOWN = ["start.html", "recipes/prompts-and-models.html", "rules.html", "reference/suite-keys.html", "security.html"]
# What people look for, and a page that has to be among what is found.
WORDS = {"kappa": "agreement", "max_cost_usd": "budgets", "undecided": "glossary", "Retry-After": "retries", "shard": "many-machines"}


def check(claim, words):
    if not claim:
        sys.exit(f"docs-site: not so: {words}")


class Links(HTMLParser):
    """The links of a page, and the places on it."""

    def __init__(self, text):
        super().__init__()
        self.links, self.places = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id":
                self.places.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


def follow_links():
    pages = {path: Links(path.read_text()) for path in site.rglob("*.html") if path.name != "404.html"}
    count = 0
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            count += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            check(target.exists(), f"{path.relative_to(site)} links to {link}")
            if parts.fragment and target in pages:
                check(unquote(parts.fragment) in pages[target].places, f"{path.relative_to(site)} links to {link}")
    check(len(pages) > 60 and count > 3000, f"{len(pages)} pages with {count} links")
    return len(pages), count


def search(page, words, expected):
    page.goto(f"file://{site}/index.html")
    page.keyboard.press("s")
    page.locator("#mdbook-searchbar").press_sequentially(words)
    found = page.locator("#mdbook-searchresults li a")
    found.first.wait_for()
    links = [found.nth(at).get_attribute("href") for at in range(found.count())]
    check(any(expected in link for link in links), f"a search for {words} finds {expected}, and not only {links}")
    found.first.click()
    page.wait_for_url(lambda it: "highlight=" in it)
    words = words.split("-")[0].lower()
    check(words in page.locator("main").inner_text().lower(), f"{page.url} has what was searched for: {words}")


def use_browser():
    outside = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=os.environ["BROWSER"])
        for scheme in ("light", "dark"):
            # A page has to work by itself: nothing is fetched.
            context = browser.new_context(color_scheme=scheme, offline=True, viewport={"width": 1280, "height": 900})
            page = context.new_page()
            page.on("request", lambda it: outside.append(it.url) if not it.url.startswith(("file:", "data:")) else None)
            page.on("pageerror", lambda it: check(False, f"no error on a page: {it}"))
            for name in SHOWN:
                page.goto(f"file://{site}/{name}")
                page.locator("main h1").first.wait_for()
                wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
                check(wide <= 0, f"{name} is {wide} pixels too wide")
                if keep:
                    pathlib.Path(keep).mkdir(parents=True, exist_ok=True)
                    page.screenshot(path=f"{keep}/{name.replace('/', '-')[:-5]}-{scheme}.png")
            if scheme == "light":
                for words, expected in WORDS.items():
                    search(page, words, expected)
                if keep:
                    page.screenshot(path=f"{keep}/search.png")
            context.close()
        browser.close()
    check(not outside, f"nothing is fetched, and not {outside}")


pages, links = follow_links()
use_browser()
print(f"docs-site: {pages} pages, {links} links, {len(WORDS)} searches without a network")
