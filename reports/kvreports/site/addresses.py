"""Where each page of the site is. Every page is `NAME/index.html`, so that `/NAME` is its address on any server."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Container

from kvspec import chapters
from kvspec.reading.moved_clauses import now

TEXTS = {
    "spec/README.md": ("guide", "Reading guide"),
    "spec/EXAMPLES.md": ("examples", "How clauses and examples are written"),
    "spec/GLOSSARY.md": ("glossary", "Glossary"),
    "spec/DIFFERENCES.md": ("differences", "Where engines differ"),
    "spec/BUGS.md": ("bugs", "Bugs"),
    "spec/WIRE.md": ("wire", "Engines in any language"),
    "docs/tutorial.md": ("tutorial", "Tutorial"),
    "docs/engine.md": ("engine", "Judge a released engine"),
    "docs/commands.md": ("commands", "Commands"),
    "docs/probe.md": ("probe", "Read an engine's attention"),
    "docs/serving.md": ("serving", "Judge a serving engine"),
    "docs/steps.md": ("steps", "Judge a serving engine from its log"),
    "docs/how-it-works.md": ("how-it-works", "How it works"),
    "spec/kvspec/appendices/anomalies.md": ("anomalies", "Anomalies"),
    "spec/kvspec/appendices/prove.md": ("prove", "Prove"),
}
"""The Markdown pages of the repository that are pages of the site: the address and the title of each."""

CHAPTER_FILES = {f"spec/kvspec/chapters/{c}.md": c for c in chapters.TEXTS}
PICTURE = "reports/published/demo.svg"
"""What the first page shows: a failure, drawn."""
PREVIEW = "reports/published/pictures/preview.png"
"""What a link to the site shows elsewhere: 1200 by 630 pixels, as no previewer takes an SVG."""
BOARD = "reports/published/engines/README.md"
OVER_TIME = "reports/published/engines/VERSIONS.md"


def file(name: str) -> str:
    """The file of a page; the first page has no name."""
    return f"{name}/index.html" if name else "index.html"


def to(name: str, here: str, anchor: str = "") -> str:
    """A link from one page to another as a path of files, so that it works without a server too."""
    path = posixpath.relpath(file(name), here or ".")
    return f"{path}#{anchor}" if anchor else path


def resolved(link: str, source: str, here: str, pages: Container[str]) -> str | None:
    """A link of a file in the repository, rewritten for the page `here`; None if the site has no such page."""
    if re.match(r"https?://", link):
        return link
    path, _, anchor = link.partition("#")
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path)) if path else source
    if target in CHAPTER_FILES:
        anchor = now(anchor)
        return to(anchor if anchor in pages else CHAPTER_FILES[target], here, "" if anchor in pages else anchor)
    name = {BOARD: "board", OVER_TIME: "versions"}.get(target) or TEXTS.get(target, ("",))[0]
    return to(name, here, anchor) if name and name in pages else None
