"""Follows every link of a built site: `python -m tools.site_links DIR`. Exit status: 0 fine, 1 some lead nowhere.

A page may link to the network, but load nothing from it; every clause has a page.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

from kvspec.reading.clauses import index

OUTSIDE = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.I)


class Page(HTMLParser):
    """The ids of a page, where its links lead, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what the tag says."""
        said = {name: value or "" for name, value in attrs}
        self.ids += [said["id"]] if "id" in said else []
        into = self.links if tag in ("a", "form") or said.get("rel") == "canonical" else self.loads
        into += [said[name] for name in ("href", "src", "action", "data", "poster", "srcset") if name in said]


def faults(folder: Path) -> Iterator[str]:
    """What is wrong with a site, a line each."""
    yield from (f"{c}: no page" for c in index() if not (folder / c / "index.html").is_file())
    for path in sorted(folder.rglob("*.html")):
        page, name = _page(path), path.relative_to(folder)
        yield from (f"{name}: id {i!r} stands twice" for i in {i for i in page.ids if page.ids.count(i) > 1})
        yield from (f"{name}: loads {a}" for a in page.loads if OUTSIDE.match(a) and a != "data:,")
        inner = [a for a in dict.fromkeys(page.links + page.loads) if not OUTSIDE.match(a)]
        yield from (f"{name}: {a} leads nowhere" for a in inner if not _leads(path, a))
    for style in folder.rglob("*.css"):
        yield from (f"{style.name}: loads {a}" for a in re.findall(r"url\([^)]*\)|@import[^;]*", style.read_text()))


@cache
def _page(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


def _leads(page: Path, address: str) -> bool:
    """Whether an address is a file that is there, and has the anchor."""
    path, _, anchor = address.partition("#")
    target = page if not path else (page.parent / unquote(path.partition("?")[0])).resolve()
    if not target.is_file():
        return False
    return not anchor or anchor.startswith("trace=") or unquote(anchor) in _page(target).ids


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tools.site_links", description="Follow the links of a site.")
    parser.add_argument("folder", type=Path, help="the site")
    found = list(faults(parser.parse_args(arguments).folder))
    sys.stdout.write("".join(f"{fault}\n" for fault in found) or "every link leads somewhere\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
