"""A trace drawn as text, step by step: for terminals and for Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kvreports.drawing.frames import Cell, Frame, Strip, frames
from kvreports.drawing.row_fates import deaths
from kvspec.records.run import StepRecord

MARKS = {"dead": "†", "missing": "", "hidden": "", "gap": ""}


def draw(steps: Sequence[StepRecord]) -> str:
    """The trace step by step, as text: what was expected and found, differing slots in [brackets]."""
    parts = frames(steps)
    text = [_frame(f) for f in parts]
    marks = {"[": "[x] differs"} if any(f.differs for f in parts) else {}
    marks |= {"†": f"x† dead: {deaths(steps)}", "|": "| oldest row of a wrapped ring follows"}
    return "\n".join([*text, *_legend("\n".join(text), marks)])


def _legend(drawing: str, marks: Mapping[str, str]) -> list[str]:
    present = [words for mark, words in marks.items() if mark in drawing]
    return ["", "  " + "   ".join(present)] if present else []


def _frame(frame: Frame) -> str:
    if not frame.number:
        return f"     ({frame.do})"
    mark = "!" if frame.differs else " "
    facts = "   ".join(_fact(f.name, f.expected, f.found) for f in frame.facts)
    facts += f"   ({', '.join(frame.clauses)})" if frame.differs and frame.clauses else ""
    head = f"{mark}{frame.number:>3}  {frame.do}"
    lines = [f"{head:<28} {facts}".rstrip(), *(f"     {s}" for s in _strips(frame.strips))]
    return "\n".join(lines)


def _fact(name: str, expected: str, found: str | None) -> str:
    return f"{name} {expected}" if found is None else f"{name} {expected} [found {found}]"


def _strips(strips: list[Strip]) -> list[str]:
    cells = [[_cell(c) for c in s.cells] for s in strips]
    wide = max((len(c) for row in cells for c in row if "…" not in c), default=1)
    name = max((len(s.what) for s in strips), default=8)
    return [_strip(s, row, wide, max(8, name)) for s, row in zip(strips, cells, strict=True)]


def _strip(strip: Strip, cells: list[str], wide: int, name: int) -> str:
    who = "" if strip.who == "both" else strip.who
    seams = [" | " if c.seam else " " for c in strip.cells]
    body = "".join(s + c.ljust(wide) for s, c in zip(seams, cells, strict=True))
    note = f"  ({strip.note})" if strip.note else ""
    return f"{strip.what:<{name}} {who:<9}{body}{note}".rstrip()


def _cell(cell: Cell) -> str:
    if cell.kind == "gap":
        return f"…{cell.text}…"
    text = (cell.text or "_") + MARKS.get(cell.kind, "")
    return f"[{text}]" if cell.differs else f" {text} "
