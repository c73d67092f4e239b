"""A trace drawn as slots: expected above, found below, step by step."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from html import escape
from pathlib import Path

from kvreports.drawing.frames import Cell, Fact, Frame, Strip, frames
from kvreports.safe_text import Html, plain
from kvspec.records.run import StepRecord

STYLE = Path(__file__).parents[1] / "templates" / "drawing.css"
LEFT, LABEL, HIGH, CHAR = 36, 188, 24, 7.3
"""Where strips begin, how wide their labels are, how high a cell is, how wide a character."""
KINDS = (
    (Cell("a"), "a row"),
    (Cell("a", differs=True), "differs"),
    (Cell("a", "dead"), "dead: rolled back"),
    (Cell("NaN", "unwritten"), "unwritten"),
    (Cell(".", "empty"), "empty: zeros"),
    (Cell("?", "illegible"), "illegible: no row that was appended"),
    (Cell("", "missing"), "no such slot"),
    (Cell("a", seam=True), "oldest row of a wrapped ring"),
)


def draw_svg(steps: Sequence[StepRecord], title: str = "Trace", standalone: bool = True) -> Html:
    """The trace as SVG; `standalone` carries its own style, else the page has it (`templates/drawing.css`)."""
    body, y, wide = [], 8.0, 320.0
    for frame in frames(steps):
        drawn, y, right = _frame(frame, y)
        body.append(drawn)
        wide = max(wide, right)
    return _svg("".join(body), wide + 12, y, title, standalone)


def legend() -> list[tuple[Html, str]]:
    """One drawing for each kind of cell, and its name."""
    return [(_svg(_cell(c, 3, 2), 7 + _width(c), HIGH + 4, name, False), name) for c, name in KINDS]


def _svg(body: str, wide: float, high: float, title: str, standalone: bool) -> Html:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="drawing" role="img" aria-label="{escape(plain(title))}"'
    size = f' width="{wide:.0f}" height="{high:.0f}" viewBox="0 0 {wide:.0f} {high:.0f}">'
    style = f'<style>{_light()}</style><rect width="100%" height="100%" fill="#fff"/>' if standalone else ""
    return Html(f"{head}{size}{style}{body}</svg>")


@lru_cache(maxsize=1)
def _light() -> str:
    """The style with its light colours written out: viewers other than browsers know no CSS variables."""
    css = STYLE.read_text(encoding="utf-8")
    colours = dict(re.findall(r"(--d-[a-z-]+): light-dark\((#[0-9a-f]+),", css))
    css = re.sub(r"^  (--d-|color-scheme).*\n", "", css, flags=re.MULTILINE)
    return re.sub(r"var\((--d-[a-z-]+)\)", lambda m: colours[m[1]], css)


def _frame(frame: Frame, y: float) -> tuple[str, float, float]:
    """The frame drawn from y down, where it ends, how far it reaches to the right."""
    if not frame.number:
        return _text(LEFT, y + 14, frame.do, "note"), y + 30, LEFT + CHAR * len(frame.do)
    mark = ' class="differs"' if frame.differs else ""
    out, right = [_text(0, y + 14, str(frame.number), "number"), _text(LEFT, y + 14, frame.do, "do")], LEFT * 1.0
    after = LEFT + CHAR * len(frame.do) + 18
    said, right = _facts(frame.facts, after, y + 14)
    cites = ", ".join(frame.clauses)
    out += [said, _text(right, y + 14, cites, "cites")]
    right += CHAR * len(cites)
    y, before = y + 24, ""
    for strip in frame.strips:
        if _numbered(strip.what) != _numbered(before) and strip.cells and not _small(strip):
            out.append(_indices(strip, y + 9))
            y += 12
        drawn, y, end = _strip(strip, y, strip.what != before)
        before, right = strip.what, max(right, end)
        out.append(drawn)
    return f"<g{mark}>{''.join(out)}</g>", y + 14, right


def _small(strip: Strip) -> bool:
    return strip.what.startswith("query")


def _numbered(what: str) -> str:
    """Strips of one kind are numbered once, above the first: those of layers together."""
    return what if what in ("", "slots", "history", "view") else "layers"


def _facts(facts: list[Fact], x: float, y: float) -> tuple[str, float]:
    out = []
    for fact in facts:
        said = f"{fact.name} {fact.expected}"
        out.append(_text(x, y, said, "fact"))
        x += CHAR * len(said) + 8
        if fact.found is not None:
            found = f"≠ found {fact.found}"
            out.append(_text(x, y, found, "found"))
            x += CHAR * len(found) + 8
        x += 8
    return "".join(out), x


def _indices(strip: Strip, y: float) -> str:
    out, x = [], float(LEFT + LABEL)
    for cell in strip.cells:
        if cell.index is not None:
            out.append(_text(x + _width(cell) / 2, y, str(cell.index), "index"))
        x += _width(cell)
    return "".join(out)


def _strip(strip: Strip, y: float, first: bool) -> tuple[str, float, float]:
    small = _small(strip)
    who = "" if strip.who == "both" else strip.who
    out = [_text(LEFT, y + 16, strip.what if first else "", "what")]
    out.append(_text(LEFT + LABEL - 8, y + 16, who, "found who" if who == "found" and strip.differs else "who"))
    x, positions = float(LEFT + LABEL), []
    for cell in strip.cells:
        out.append(_cell(cell, x, y))
        if cell.position is not None:
            positions.append(_text(x + _width(cell) / 2, y + HIGH + 9, f"{cell.position}", "index"))
        x += _width(cell)
    if strip.note:
        out.append(_text(x + 8, y + 16, strip.note, "note"))
    y += HIGH + (1 if small else 3)
    if strip.what == "slots" and any(c.position not in (None, c.index) for c in strip.cells):
        out += [*positions, _text(LEFT + LABEL - 8, y + 6, "position", "index end")]
        y += 12
    return "".join(out), y, x + CHAR * len(strip.note) + 8


def _cell(cell: Cell, x: float, y: float) -> str:
    wide = _width(cell)
    label = _text(x + wide / 2, y + 16, f"… {cell.text} …" if cell.kind == "gap" else cell.text, f"row {cell.kind}")
    if cell.kind == "gap":
        return label
    mark = f'<path class="mark" d="M{x + wide - 9:.0f} {y + 1:.0f}h8v8z"/>' if cell.differs else ""
    seam = f'<path class="seam" d="M{x:.0f} {y - 2:.0f}v{HIGH + 4}"/>' if cell.seam else ""
    place = f'x="{x + 1:.0f}" y="{y + 1:.0f}" width="{wide - 2:.0f}" height="{HIGH - 2}"'
    box = f'<rect class="box {cell.kind}" {place}/>'
    return f'<g class="{"cell off" if cell.differs else "cell"}">{box}{mark}{seam}{label}</g>'


def _width(cell: Cell) -> float:
    if cell.kind == "gap":
        return CHAR * (len(cell.text) + 4) + 8
    return max(26.0, CHAR * len(cell.text) + 10)


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.0f}" y="{y:.0f}">{escape(text)}</text>' if text else ""
