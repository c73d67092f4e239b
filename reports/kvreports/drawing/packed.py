"""A drawn trace as a few hundred characters that a link can carry: the frames as JSON, deflated, in base64.

The player (`templates/player.js`) reads it, so that a trace can be stepped through wherever a page has that script.
"""

from __future__ import annotations

import json
import zlib
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from typing import Any

from kvreports.drawing.frames import Cell, Frame, Strip, frames
from kvspec.records.run import StepRecord
from kvspec.registry import KINDS, needed

VERSION = 1


def packed(steps: Sequence[StepRecord], kind: str, title: str) -> str:
    """The frames of a trace on a cache of this kind, as text of letters, digits, - and _."""
    told = {
        "v": VERSION,
        "title": title[:300],
        "round": kind in KINDS and "window" in needed(kind),  # its slots are drawn as a circle
        "frames": [_frame(f) for f in frames(steps)],
    }
    text = json.dumps(told, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    return urlsafe_b64encode(deflate.compress(text) + deflate.flush()).decode().rstrip("=")


def _frame(frame: Frame) -> dict[str, Any]:
    facts = [[f.name, f.expected, f.found] for f in frame.facts]
    strips = [_strip(s) for s in frame.strips]
    told = {"n": frame.number, "do": frame.do, "cites": frame.clauses, "facts": facts, "strips": strips}
    return {**told, "differs": 1} if frame.differs else told


def _strip(strip: Strip) -> dict[str, Any]:
    return {"what": strip.what, "who": strip.who, "note": strip.note, "cells": [_cell(c) for c in strip.cells]}


def _cell(cell: Cell) -> list[Any]:
    """Its text, its kind if it is no row, its index, its position, and its marks: d for differs, s for seam."""
    marks = ("d" if cell.differs else "") + ("s" if cell.seam else "")
    kind = "" if cell.kind == "row" else cell.kind
    whole = [cell.text, kind, cell.index, cell.position, marks]
    while whole and whole[-1] in ("", None):
        whole.pop()
    return whole
