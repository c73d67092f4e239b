"""Looks at a page in a real browser: `python -m tools.check_in_browser PAGE.html --out DIR`.

Writes a screenshot for a desktop and for a phone, in light and dark, and checks that the page's script ran
without an error, that nothing was blocked, and that the page does not scroll sideways. Exit status: 0 fine,
1 the page is at fault, 2 usage, 3 the browser failed, 4 no browser here.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape, unescape
from pathlib import Path
from typing import Any

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--enable-logging=stderr",
)
WIDTHS = {"desktop": 1280, "phone": 390}
SCHEMES = {"dark": 0, "light": 1}
HIGHEST = 16_000
"""Pixels a screenshot is high at most."""

HOST = """<!doctype html><meta charset="utf-8">
<style>body {{ margin: 0 }} iframe {{ border: 0; display: block }}</style>
<iframe width="{width}" height="{height}" srcdoc="{page}"></iframe>
<script>onload = function () {{
  var root = document.querySelector("iframe").contentDocument.documentElement;
  document.body.dataset.seen = JSON.stringify({{
    wide: root.scrollWidth, high: root.scrollHeight, ran: root.classList.contains("scripted"),
    over: Array.from(root.querySelectorAll("body *")).filter(function (e) {{
      return e.getBoundingClientRect().right > {width} + 1 && !e.closest(".drawn, .wide, pre, .command");
    }}).slice(0, 5).map(function (e) {{ return e.outerHTML.slice(0, 120); }})
  }});
}};</script>
"""
"""The page in a frame: browsers make no window as narrow as a phone."""


class BrowserFailed(Exception):
    """The browser did not do what it was asked."""


@dataclass(frozen=True)
class Look:
    """What was seen of the page at one width in one scheme."""

    name: str
    screenshot: Path
    faults: list[str]


def find_browser() -> str | None:
    """The first browser there is."""
    return next((found for b in BROWSERS if (found := shutil.which(b))), None)


def looks(page: Path, out: Path, browser: str) -> Iterator[Look]:
    """Look at the page in every width and scheme. Raises BrowserFailed."""
    out.mkdir(parents=True, exist_ok=True)
    for device, width in WIDTHS.items():
        for scheme in SCHEMES:
            with tempfile.TemporaryDirectory() as scratch:
                yield _look(page, out / f"{page.stem}-{device}-{scheme}.png", browser, width, scheme, Path(scratch))


def _look(page: Path, shot: Path, browser: str, width: int, scheme: str, scratch: Path) -> Look:
    dom, log = _run(browser, scratch, page, width, 900, scheme, "--dump-dom")
    seen = _seen(dom)
    high = min(int(seen["high"]), HIGHEST)
    _run(browser, scratch, page, width, high, scheme, f"--screenshot={shot.resolve()}")
    return Look(f"{width} px, {scheme}", shot, _faults(seen, width, log))


def _run(
    browser: str, scratch: Path, page: Path, width: int, high: int, scheme: str, action: str
) -> tuple[str, str]:
    host = scratch / "host.html"
    text = page.read_text(encoding="utf-8")
    host.write_text(HOST.format(width=width, height=high, page=escape(text)), encoding="utf-8")
    flags = [
        *FLAGS,
        f"--user-data-dir={scratch / 'profile'}",
        f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}",
    ]
    command = [browser, *flags, f"--window-size={width},{high}", action, host.as_uri()]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=120, check=False)
    except (OSError, subprocess.TimeoutExpired) as e:
        raise BrowserFailed(f"{browser}: {e}") from None
    if done.returncode:
        raise BrowserFailed(f"{browser} ended with {done.returncode}: {done.stderr[-400:].strip()}")
    return done.stdout, done.stderr


def _seen(dom: str) -> dict[str, Any]:
    found = re.search(r'<body data-seen="([^"]*)"', dom)
    if found is None:
        raise BrowserFailed("the browser showed nothing of the page; was it cut short?")
    return dict(json.loads(unescape(found[1])))


def _faults(seen: dict[str, Any], width: int, log: str) -> list[str]:
    faults = [m[1] for m in re.finditer(r"CONSOLE[^\"]*(\".*)", log)]
    if not seen["ran"]:
        faults.append("the script of the page did not run")
    if seen["wide"] > width:
        faults.append(f"it scrolls sideways: {seen['wide']} px wide; beyond the edge: {seen['over']}")
    return faults


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.check_in_browser", description="Look at a page in a browser."
    )
    parser.add_argument("page", type=Path, help="the page")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where screenshots go")
    asked = parser.parse_args(arguments)
    browser = find_browser()
    if browser is None:
        print(f"no browser found; looked for {', '.join(BROWSERS)}", file=sys.stderr)
        return 4
    if not asked.page.is_file():
        parser.error(f"{asked.page}: no such page")
    try:
        return max([_told(look) for look in looks(asked.page, asked.out, browser)])
    except (BrowserFailed, OSError) as e:
        print(e, file=sys.stderr)
        return 3


def _told(look: Look) -> int:
    print(f"{look.name}: {'; '.join(look.faults) or 'fine'}  {look.screenshot}")
    return 1 if look.faults else 0


if __name__ == "__main__":
    sys.exit(main())
