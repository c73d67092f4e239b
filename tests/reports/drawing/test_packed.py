"""A trace that a link carries says what its drawing says."""

from __future__ import annotations

import re

from kvreports.drawing.frames import frames
from kvreports.drawing.packed import packed
from support.readers.player import unpacked
from support.samples.record_samples import failing


def test_what_is_packed_says_what_is_drawn() -> None:
    failure = next(f for f in failing().failures if f.steps)
    text = packed(failure.steps, "ring", "a trace")
    told, drawn = unpacked(text), frames(failure.steps)
    assert re.fullmatch(r"[\w-]+", text) and told["round"] and told["title"] == "a trace"
    assert [(f["n"], f["do"], f.get("differs", 0)) for f in told["frames"]] == [
        (f.number, f.do, int(f.differs)) for f in drawn
    ]
    cells = [c for f in told["frames"] for s in f["strips"] for c in s["cells"]]
    assert [c[0] for c in cells] == [c.text for f in drawn for s in f.strips for c in s.cells]
    assert [("d" in (c[4:] or [""])[0]) for c in cells] == [
        c.differs for f in drawn for s in f.strips for c in s.cells
    ]
    assert any("d" in (c[4:] or [""])[0] for c in cells)


def test_a_link_is_short() -> None:
    assert all(len(packed(f.steps, "ring", f.words)) < 2000 for f in failing().failures)
    assert not unpacked(packed((), "growing", ""))["round"]
