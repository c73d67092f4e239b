"""The links of the repository's Markdown pages, and the anchors that a code host gives their headings."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
CODE = re.compile(r"^(```|~~~).*?^\1$|^(?: {4}|\t)[^\n]*$|`[^`\n]*`", re.M | re.S)
LINK = re.compile(r"\]\(\s*([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)\s*\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.M)
ANCHOR = re.compile(r'<a id="([^"]+)"></a>')
ID = re.compile(r"\b[A-Z]+-[1-9]\d*\b(?!/)")


def pages() -> list[Path]:
    """The Markdown pages that git tracks or would track."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in listed.stdout.split() if (ROOT / name).is_file()]


def prose(text: str) -> str:
    """The text without its code."""
    return CODE.sub("", text)


def links(text: str) -> list[str]:
    """The addresses that a page links to."""
    return [re.sub(r"\s+", "", link) for link in LINK.findall(prose(text))]


def anchors(text: str) -> set[str]:
    """The anchors of a page: its own, and those of its headings."""
    return {*ANCHOR.findall(text), *map(slug, HEADING.findall(prose(text)))}


def slug(heading: str) -> str:
    """The anchor that a code host gives a heading."""
    words = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower())
    return words.strip().replace(" ", "-")


def broken(page: Path) -> list[str]:
    """The links of a page within the repository that lead nowhere."""
    return [link for link in links(page.read_text(encoding="utf-8")) if not leads(page, link)]


def leads(page: Path, link: str) -> bool:
    """Whether a link leads to a file that is there, and to an anchor in it; links to the network are taken."""
    if re.match(r"[a-z]+:", link):
        return True
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not anchor or not target.exists() or target.suffix != ".md":
        return target.exists()
    return anchor in _anchors_of(target)


@cache
def _anchors_of(page: Path) -> set[str]:
    return anchors(page.read_text(encoding="utf-8"))


def bare_ids(text: str, ids: set[str]) -> list[str]:
    """The ids of clauses that stand in the text of a page and are no links."""
    unlinked = re.sub(r"\[[^\]\[]*\]\([^)]*\)|\*\*[A-Z]+-\d+\*\*", "", prose(text))
    return [i for i in ID.findall(unlinked) if i in ids]
