"""Looks at pages in a real browser: `python -m tools.check_in_browser PAGE.html... --out DIR --axe axe.min.js`.

For a desktop and a phone, in light and dark, it takes a screenshot and asks: did a script fail, was anything loaded
from outside or missing, does the page scroll sideways, does it show HTML as text, does axe-core find something
serious? Then, once for each page: does Tab reach all that takes the focus, and is the focus seen; is the text there
without scripts; is the page whole in print; do keys step its first trace? Exit status: 0 fine, 1 a page is at
fault, 2 usage, 4 no browser here.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTHS = {"desktop": 1280, "phone": 390}
SCHEMES = ("light", "dark")
SERIOUS = ("serious", "critical")
HIGHEST = 12_000
"""Pixels a screenshot is high at most."""
SCROLLS = ".drawn, .wide, pre, .command, .many, .skip, .symbols, table"
"""What may be wider than the page, or lies outside it on purpose."""
MOST_STOPS = 150
"""Elements that Tab is followed through on a page."""

SIDEWAYS = """([width, scrolls]) => document.documentElement.scrollWidth <= width ? [] :
  [...document.querySelectorAll("body *")].filter(e => !e.closest(scrolls))
  .filter(e => e.getBoundingClientRect().right > width + 1).slice(0, 5).map(e => e.outerHTML.slice(0, 120))"""
SOURCE = """() => {
  const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT), found = [];
  while (texts.nextNode()) {
    const {parentElement, data} = texts.currentNode;
    const tag = /<\\/?(a|p|div|span|td|code)[ >]/.test(data);
    if (tag && !parentElement.closest("pre, code, script, noscript")) { found.push(data); }
  }
  return found.slice(0, 3).map(text => text.slice(0, 80)); }"""
"""Tags that stand in a text and are no code."""
STOPS = """() => [...document.querySelectorAll("a[href], button, input, select, summary, [tabindex='0']")]
  .filter(e => e.checkVisibility() && !e.disabled).length"""
FOCUSED = """() => { const e = document.activeElement, box = e.getBoundingClientRect(), style = getComputedStyle(e);
  if (!e.dataset.stop) { e.dataset.stop = document.querySelectorAll("[data-stop]").length + 1; }
  return {stop: e === document.body ? 0 : Number(e.dataset.stop), seen: box.width > 0 && box.height > 0,
    marked: style.outlineStyle !== "none" || style.boxShadow !== "none", what: e.outerHTML.slice(0, 100)}; }"""
WORDS = "() => document.querySelector('main').textContent.split(/\\s+/).length"


@dataclass
class Look:
    """What was found at fault in one way of looking at a page."""

    page: str
    how: str
    faults: list[str] = field(default_factory=list)


def find_browser() -> str | None:
    """The first browser there is."""
    return next((found for b in BROWSERS if (found := shutil.which(b))), None)


def looks(browser: Any, page: Path, out: Path, axe: str) -> Iterator[Look]:
    """Look at one page in every way. Screenshots go to `out`."""
    name = page.stem if page.stem != "index" else page.parent.name
    for device, width in WIDTHS.items():
        for scheme in SCHEMES:
            yield _seen(
                browser,
                page,
                out / f"{name}-{device}-{scheme}.png",
                width,
                scheme,
                axe,
                Look(name, f"{device}, {scheme}"),
            )
    for how, look in (
        ("keyboard", _keyboard),
        ("without script", _without_script),
        ("print", _print),
        ("player", _player),
    ):
        found = Look(name, how)
        look(browser, page, out / f"{name}-{how.replace(' ', '-')}", found.faults)
        yield found


def _open(browser: Any, page: Path, faults: list[str], width: int = 1280, **context: Any) -> Any:
    """Open the page; what goes wrong while it is read is a fault."""
    tab = browser.new_context(viewport={"width": width, "height": 900}, **context).new_page()
    tab.on("console", lambda m: faults.append(f"console: {m.text}") if m.type == "error" else None)
    tab.on("pageerror", lambda e: faults.append(f"script: {e}"))
    tab.on(
        "request", lambda r: None if r.url.startswith(("file:", "data:")) else faults.append(f"asks for {r.url}")
    )
    tab.on("requestfailed", lambda r: faults.append(f"not there: {r.url}"))
    tab.goto(page.resolve().as_uri())
    return tab


def _seen(browser: Any, page: Path, shot: Path, width: int, scheme: str, axe: str, look: Look) -> Look:
    tab = _open(browser, page, look.faults, width, color_scheme=scheme)
    if not tab.evaluate("document.documentElement.classList.contains('scripted')"):
        look.faults.append("the script of the page did not run")
    look.faults += [f"scrolls sideways: {e}" for e in tab.evaluate(SIDEWAYS, [width, SCROLLS])]
    look.faults += [f"shows HTML as text: {e}" for e in tab.evaluate(SOURCE)]
    if axe:
        look.faults += list(_axe(tab, axe))
    high = min(HIGHEST, tab.evaluate("document.documentElement.scrollHeight"))
    tab.set_viewport_size({"width": width, "height": max(600, high)})
    tab.screenshot(path=str(shot))
    tab.context.close()
    return look


def _axe(tab: Any, axe: str) -> Iterator[str]:
    """What axe-core calls serious or worse."""
    tab.evaluate(axe)
    found = tab.evaluate("axe.run(document, {resultTypes: ['violations'], preload: false})")
    for violation in found["violations"]:
        if violation["impact"] in SERIOUS:
            nodes = violation["nodes"]
            yield f"axe, {violation['impact']}: {violation['id']} at {len(nodes)}: {nodes[0]['html'][:160]}"


def _keyboard(browser: Any, page: Path, shot: Path, faults: list[str]) -> None:
    """Tab reaches everything that can take the focus, in turn, and each stop is seen."""
    tab = _open(browser, page, faults)
    stops = min(MOST_STOPS, tab.evaluate(STOPS))
    for number in range(1, stops + 1):
        tab.keyboard.press("Tab")
        at = tab.evaluate(FOCUSED)
        if at["stop"] != number:
            faults.append(f"Tab {number} of {stops} leads to stop {at['stop']}: {at['what']}")
            break
        if not (at["seen"] and at["marked"]):
            faults.append(f"the focus is not seen on {at['what']}")
    tab.screenshot(path=f"{shot}.png")
    tab.context.close()


def _without_script(browser: Any, page: Path, shot: Path, faults: list[str]) -> None:
    """The text that is there with scripts is there without them."""
    count = []
    for enabled in (True, False):
        tab = _open(browser, page, faults if enabled else [], java_script_enabled=enabled)
        count.append(len(tab.locator("main").inner_text().split()))
        tab.screenshot(path=f"{shot}.png")
        tab.context.close()
    if count[1] < 0.95 * count[0] - 10:
        faults.append(f"{count[0]} words with scripts, {count[1]} without")


def _print(browser: Any, page: Path, shot: Path, faults: list[str]) -> None:
    """On paper nothing is cut off at the right."""
    tab = _open(browser, page, faults)
    tab.emulate_media(media="print")
    tab.pdf(path=f"{shot}.pdf", format="A4")
    tab.set_viewport_size({"width": 980, "height": 1200})
    tab.screenshot(path=f"{shot}.png")
    faults += [f"cut off in print: {e}" for e in tab.evaluate(SIDEWAYS, [980, SCROLLS])]
    tab.context.close()


def _player(browser: Any, page: Path, shot: Path, faults: list[str]) -> None:
    """The first trace is stepped to its end by keys, and a link carries it."""
    tab = _open(browser, page, faults)
    button = tab.locator(".trace-tools button:visible").first
    if tab.locator(".trace-tools button:visible").count():
        button.click()
        told = tab.locator(".player output").first
        told.wait_for()
        first, _, last = told.inner_text().removeprefix("step ").partition(" of ")
        for _ in range(int(last) - int(first)):
            tab.keyboard.press("ArrowRight")
        if told.inner_text() != f"step {last} of {last}":
            faults.append(f"keys step to {told.inner_text()!r}, not to the last of {last}")
        tab.locator(".player").first.screenshot(path=f"{shot}.png")
        tab.locator(".player-link").first.click()
        tab.locator("#carried .player output").wait_for(timeout=5000)
        if tab.locator("#carried .player output").inner_text() != f"step {last} of {last}":
            faults.append("the link does not lead to its step")
    tab.context.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.check_in_browser", description="Look at pages in a browser."
    )
    parser.add_argument("pages", type=Path, nargs="+", help="the pages")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where screenshots go")
    parser.add_argument(
        "--axe", type=Path, metavar="FILE", help="axe.min.js of axe-core; without it axe is left out"
    )
    asked = parser.parse_args(arguments)
    browser = find_browser()
    if browser is None:
        print(f"no browser found; looked for {', '.join(BROWSERS)}", file=sys.stderr)
        return 4
    if missing := [str(p) for p in asked.pages if not p.is_file()]:
        parser.error(f"no such page: {', '.join(missing)}")
    from playwright.sync_api import sync_playwright

    asked.out.mkdir(parents=True, exist_ok=True)
    axe = asked.axe.read_text(encoding="utf-8") if asked.axe else ""
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        told = [_told(look) for page in asked.pages for look in looks(opened, page, asked.out, axe)]
        opened.close()
    return max(told)


def _told(look: Look) -> int:
    print(f"{look.page}, {look.how}: {'; '.join(dict.fromkeys(look.faults)) or 'fine'}", flush=True)
    return 1 if look.faults else 0


if __name__ == "__main__":
    sys.exit(main())
