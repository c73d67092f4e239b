"""A trace drawn as slots: expected above, found below, step by step."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from html import escape
from itertools import groupby, pairwise, zip_longest
from pathlib import Path

from kvreports.drawing.frames import Cell, Frame, Strip, frames
from kvreports.safe_text import Html, plain
from kvspec.records.run import StepRecord

STYLE = Path(__file__).parents[1] / "templates" / "drawing.css"
LEFT, LABEL, HIGH, CHAR = 36, 188, 24, 7.3
"""Where strips begin, how wide their labels are, how high a cell is, how wide a character."""
WIDEST = 760
"""The width at which facts and cells continue in the next line, so that a drawing fits beside text."""
KINDS = (
    (Cell("a"), "a row"),
    (Cell("a", differs=True), "differs"),
    (Cell("a", "dead"), "dead: rolled back, freed or refused"),
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


def _frame(frame: Frame, top: float) -> tuple[str, float, float]:
    """The frame, drawn from the top down; and where it ends, down and to the right."""
    if not frame.number:
        return _text(LEFT, top + 14, frame.do, "note"), top + 30, LEFT + CHAR * len(frame.do)
    said, y, right = _facts(frame, top + 14)
    out, before = [_text(8, top + 14, str(frame.number), "number"), said], ""
    for line in _lines(frame.strips):
        for strip, goes_on in line:
            new = goes_on or _numbered(strip.what) != _numbered(before)
            if new and strip.cells and not _small(strip) and strip is line[0][0]:
                out.append(_indices(strip, y + 9))
                y += 12
            drawn, y, end = _strip(strip, y, strip.what != before)
            before, right = strip.what, max(right, end)
            out.append(drawn)
    if not frame.differs:
        return f"<g>{''.join(out)}</g>", y + 14, right
    bar = f'<rect class="fails" x="0" y="{top:.0f}" width="4" height="{y - top:.0f}"/>'
    return f'<g class="differs">{bar}{"".join(out)}</g>', y + 14, right


def _lines(strips: list[Strip]) -> Iterator[list[tuple[Strip, bool]]]:
    """The strips line by line: strips of one thing that are wider than the drawing continue together below. Tells
    for each strip whether it continues a line above."""
    for _, alike in groupby(strips, key=lambda strip: strip.what):
        group = list(alike)
        ends = _breaks(group)
        for start, end in pairwise([0, *ends]):
            last = end == ends[-1]
            parts = [replace(s, cells=s.cells[start:end], note=s.note if last else "") for s in group]
            yield [(part, start > 0) for part in parts if part.cells or not start]


def _breaks(group: list[Strip]) -> list[int]:
    """After which cells a line ends; each cell is as wide as the widest of the group."""
    ends, x = list[int](), 0.0
    for i, cells in enumerate(zip_longest(*(strip.cells for strip in group))):
        wide = max(_width(cell) for cell in cells if cell is not None)
        if x and LEFT + LABEL + x + wide > WIDEST:
            ends.append(i)
            x = 0.0
        x += wide
    return [*ends, max(len(strip.cells) for strip in group)]


def _small(strip: Strip) -> bool:
    return strip.what.startswith("query")


def _numbered(what: str) -> str:
    """Strips of one kind are numbered once, above the first: those of layers together."""
    return what if what in ("", "slots", "history", "view") else "layers"


def _facts(frame: Frame, y: float) -> tuple[str, float, float]:
    """The operation, the values beside the rows, and the clauses; and where it ends, down and to the right."""
    said = [(frame.do, "do")]
    for fact in frame.facts:
        said += [(f"{fact.name} {fact.expected}", "fact")]
        said += [(f"≠ found {fact.found}", "found")] if fact.found is not None else []
    said += [(f"{clause}{',' if clause != frame.clauses[-1] else ''}", "cites") for clause in frame.clauses]
    out, x, right = [], float(LEFT), 0.0
    for text, kind in said:
        wide = CHAR * len(text)
        if x > LEFT and x + wide > WIDEST:
            x, y = LEFT + 18.0, y + 16
        out.append(_text(x, y, text, kind))
        right = max(right, x + wide)
        x += wide + (6 if kind == "cites" else 16)
    return "".join(out), y + 10, right


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
