"""Traces as they are drawn: which rows are dead, what is marked, what is left out and said to be."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import pytest
from msgspec import convert, to_builtins

from kvreports.drawing.frames import CELLS, QUERIES, STEPS, frames
from kvreports.drawing.row_fates import fates
from kvreports.drawing.svg import WIDEST, draw_svg
from kvreports.drawing.text import draw
from kvspec.records.run import StepRecord

SVG = "{http://www.w3.org/2000/svg}"


def at(offset: int, slots: str, capacity: int = 4, sees: str | None = None, **more: Any) -> Any:
    """What is seen: slots by letters, and after an append what each query sees."""
    rows = slots.split()
    out = {"result": "ok", "offset": offset, "buffered": len(rows), "capacity": capacity, "slots": rows}
    if sees is not None:
        out |= {"history": rows, "queries": [q.split() for q in sees.split("/") if q]}
    return out | more


def step(do: str, clauses: str, expected: Any, found: Any = None, differs: str = "") -> StepRecord:
    said = {"expected": expected, "found": found or expected}
    document = {"do": do, "clauses": clauses.split(), **said, "differs": differs.split()}
    return convert(to_builtins(document), StepRecord)


def ring_steps() -> list[StepRecord]:
    """A ring that loses its write index on an append of no rows."""
    refused = at(5, "e b c d", result="refused RING-10", other={"can": False})
    return [
        step("append 3", "RING-1", at(3, "a b c", sees="a/a b/a b c")),
        step("append 1", "RING-1 RING-5", at(4, "a b c d", sees="a b c d")),
        step("append 1", "RING-1 RING-5", at(5, "e b c d", sees="e b c d")),
        step("rewind 3", "RING-10", refused),
        step("append 0", "RING-17", at(5, "e b c d", sees="")),
        step(
            "append 1",
            "RING-1 RING-5",
            at(6, "e f c d", sees="c d e f"),
            at(6, "f b c d", sees="b c d f"),
            "slots history queries",
        ),
    ]


def dead_steps() -> list[StepRecord]:
    """A growing cache that shows a rejected draft again."""
    shown = at(3, "a b c ? NaN", 8, history=["a", "b", "c"], queries=[["a", "b", "c"]])
    return [
        step("append 4", "GROW-2", at(4, "a b c d", 8, "a/a b/a b c/a b c d")),
        step("rewind 2", "GROW-5", at(2, "a b", 8)),
        step("append 1", "GROW-2 GROW-5", at(3, "a b e", 8, "a b e"), shown, "buffered slots history queries"),
    ]


def strips(steps: list[Any], what: str, who: str) -> list[Any]:
    return [s for s in frames(steps)[-1].strips if (s.what, s.who) == (what, who)]


def test_rows_rolled_back_are_dead_and_rows_pushed_out_of_a_window_are_not() -> None:
    assert fates(dead_steps())[-1] == ["a", "b", "e"]
    assert fates(ring_steps())[-1] == ["a", "b", "c", "d", "e", "f"]
    (found,) = strips(dead_steps(), "slots", "found")
    assert [c.kind for c in found.cells] == ["row", "row", "dead", "illegible", "unwritten"]


def test_a_snapshot_brings_its_rows_back_to_life() -> None:
    steps = [
        step("append 2", "", at(2, "a b", sees="a/a b")),
        step("snapshot s", "", at(2, "a b")),
        step("rewind 1", "", at(1, "a")),
        step("append 1", "", at(2, "a c", sees="a c")),
        step("restore s 2", "", at(2, "a b")),
    ]
    assert fates(steps)[-2:] == [["a", "c"], ["a", "b"]]


def test_caches_are_kept_apart() -> None:
    steps = [
        step("append 1", "", at(1, "a", sees="a")),
        step("open B", "", at(0, "")),
        step("B: append 1", "", at(1, "b", sees="b")),
        step("append 1", "", at(2, "a c", sees="a c")),
    ]
    assert fates(steps) == [["a"], [], ["b"], ["a", "c"]]


def test_what_cannot_be_known_is_not_claimed() -> None:
    steps = [step("restore nothing 3", "", at(3, "x y z")), step("rewind 2", "", at(2, "x y"))]
    assert fates(steps) == [None, None]
    assert {c.kind for c in frames(steps)[-1].strips[0].cells} == {"row"}
    short = step("append 3", "", at(3, "b c", sees="a/a b/b c", history=["b", "c"], queries=[["c"]]))
    assert fates([short]) == [None]


def test_differing_slots_are_marked_and_only_they() -> None:
    for who in ("expected", "found"):
        (strip,) = strips(ring_steps(), "slots", who)
        assert [c.differs for c in strip.cells] == [True, True, False, False]
    assert not any(c.differs for f in frames(ring_steps())[:-1] for s in f.strips for c in s.cells)


def test_a_dead_slot_is_not_marked_where_a_live_one_differs() -> None:
    steps = [
        step("append 3", "", at(3, "a b c", sees="a/a b/a b c")),
        step("rewind 2", "", at(2, "a b c"), at(2, "a z y"), "slots"),
    ]
    (found,) = strips(steps, "slots", "found")
    assert [c.differs for c in found.cells] == [False, True, False]


def test_where_expected_and_found_agree_they_are_drawn_once() -> None:
    assert {s.who for f in frames(ring_steps())[:-1] for s in f.strips} == {"both"}


def test_a_wrapped_ring_shows_where_its_oldest_row_stands_and_every_position() -> None:
    (strip,) = strips(ring_steps(), "slots", "expected")
    assert [c.seam for c in strip.cells] == [False, False, True, False]
    assert [c.position for c in strip.cells] == [4, 5, 2, 3]


def test_a_query_shows_what_it_sees_and_what_it_does_not() -> None:
    second = next(s for s in frames(dead_steps())[0].strips if s.what == "query 1")
    assert [c.text for c in second.cells] == ["a", "b", "·", "·"]
    (found,) = strips(dead_steps(), "query 0", "found")
    assert [(c.text, c.differs) for c in found.cells][2:] == [("·", True), ("c", True)]


def test_text_and_svg_tell_the_same() -> None:
    drawn, svg = draw(dead_steps()), draw_svg(dead_steps())
    for words in ("append 4", "rewind 2", "capacity 8", "GROW-5"):
        assert words in drawn and words in svg
    assert "found 5" in drawn and "found 5" in svg
    assert re.search(r"slots +found +a +b +\[c†\] +\[\?\] +\[NaN\]", drawn)
    assert re.search(r"slots +expected +a +b +\[e\]", drawn)
    assert "† dead: rolled back" in drawn


@pytest.mark.parametrize(
    ("do", "offset", "result", "death"),
    [
        ("append 1", 2, "refused BOUNDED-3", "refused"),
        ("rewind 1", 1, "ok", "rolled back"),
        ("free", 0, "ok", "freed"),
        ("snapshot S", 2, "ok", "not held"),
    ],
)
def test_the_legend_says_how_rows_died(do: str, offset: int, result: str, death: str) -> None:
    """The last append shows a row that no cache holds by then."""
    held = ["a", "b"][:offset]
    steps = [
        step("append 2", "GROW-2", at(2, "a b", sees="a/a b")),
        step(do, "GROW-2", at(offset, " ".join(held), result=result)),
        step("append 0", "GROW-2", at(offset, " ".join(held)), at(offset, " ".join([*held, "c"])), "slots"),
    ]
    assert "c†" in draw(steps) and draw(steps).endswith(f"[x] differs   x† dead: {death}")


def test_svg_is_well_formed_and_says_with_shapes_what_differs() -> None:
    root = ElementTree.fromstring(draw_svg(dead_steps(), 'a "title" <&\x00'))
    assert root.get("aria-label") == 'a "title" <&\ufffd'
    off = [g for g in root.iter(f"{SVG}g") if g.get("class") == "cell off"]
    marks = [g for g in off if g.find(f"{SVG}path[@class='mark']") is not None]
    assert len(off) == len(marks) == 3 + 3 + 1 + 1 + 2 + 2
    assert not [p for p in root.iter(f"{SVG}path") if p.get("class") == "seam"]
    right = max(float(r.get("x", 0)) + float(r.get("width", 0)) for r in root.iter(f"{SVG}rect") if r.get("x"))
    assert right <= float(root.get("width", 0))


def test_svg_shows_the_seam_of_a_ring_and_is_as_wide_as_its_slots() -> None:
    root = ElementTree.fromstring(draw_svg(ring_steps()))
    assert len([p for p in root.iter(f"{SVG}path") if p.get("class") == "seam"]) == 5
    long = draw_svg([step("view", "", {"result": "ok", "slots": ["a"] * CELLS})])
    wide = ElementTree.fromstring(long)
    assert max(float(r.get("x", 0)) for r in wide.iter(f"{SVG}rect")) < float(wide.get("width", 0))


def test_a_file_of_svg_needs_no_variables_and_a_page_no_style() -> None:
    alone, inline = draw_svg(ring_steps()), draw_svg(ring_steps(), standalone=False)
    assert "<style>" in alone and "var(" not in alone and "light-dark" not in alone
    assert "<style>" not in inline
    assert "http" not in alone.replace("http://www.w3.org/2000/svg", "")


def test_long_traces_are_cut_with_a_note_of_how_many_steps() -> None:
    steps = [step("append 0", "", at(0, "", sees="")) for _ in range(1000)]
    drawn = frames(steps)
    assert len(drawn) == STEPS + 1
    assert [f.number for f in drawn][3:6] == [4, 0, 1000 - STEPS + 5]
    for text in (draw(steps), draw_svg(steps)):
        assert f"{1000 - STEPS:,} steps not drawn" in text


def test_long_rows_of_slots_keep_what_differs_and_count_what_is_left_out() -> None:
    rows = ["a"] * 5000
    other = [*rows[:2500], "b", *rows[2501:]]
    seen = [{"result": "ok", "slots": r} for r in (rows, other)]
    steps = [step("view", "", *seen, "slots")]
    (found,) = strips(steps, "slots", "found")
    assert len(found.cells) <= CELLS
    assert [c.index for c in found.cells if c.differs] == [2500]
    left_out = [int(c.text.replace(",", "")) for c in found.cells if c.kind == "gap"]
    assert sum(left_out) + sum(c.kind != "gap" for c in found.cells) == 5000
    assert f"… {left_out[0]:,} …" in draw_svg(steps) and f"…{left_out[0]:,}…" in draw(steps)


def test_many_queries_are_cut_with_a_note() -> None:
    seen = {"result": "ok", "history": ["a"], "queries": [["a"]] * 50}
    assert f"{50 - QUERIES} more queries not drawn" in draw([step("append 50", "", seen)])


def test_an_adapter_seen_only_from_outside_is_drawn_without_slots() -> None:
    expected = at(2, "a b", sees="a/a b")
    found = {"result": "ok", "slots": None, "history": ["a", "b"], "queries": [["a"], ["b"]]}
    drawn = draw([step("append 2", "", expected, found, "queries")])
    assert re.search(r"slots +expected +a +b", drawn)
    assert re.search(r"query 1 +found +\[·\] +b", drawn)
    assert "slots    found" not in drawn


def test_a_dead_adapter_found_nothing() -> None:
    steps = [step("append 1", "RING-1", at(1, "a", sees="a"), {"result": "crash"}, "result")]
    assert "[found crash]" in draw(steps)
    assert "≠ found crash" in draw_svg(steps)


def test_hostile_names_of_rows_stay_names() -> None:
    name = "</text><script>alert(1)</script>\x1b[31m" + "x" * 10_000
    steps = [step(name, name, {"result": name, "slots": [name]}, {"result": "ok", "slots": ["a"]}, "slots")]
    svg = draw_svg(steps)
    ElementTree.fromstring(svg)
    assert "<script" not in svg and len(svg) < 20_000
    assert "\x1b" not in draw(steps)


def test_a_wide_drawing_goes_on_in_the_next_line_with_its_indices() -> None:
    rows = [chr(97 + i % 26) * 3 for i in range(CELLS)]
    seen = [
        step("view", "", {"result": "ok", "slots": rows}, {"result": "ok", "slots": [*rows[:-1], "zzz"]}, "slots")
    ]
    root = ElementTree.fromstring(draw_svg(seen))
    boxes = [b for b in root.iter(f"{SVG}rect") if "box" in b.get("class", "")]
    assert len(boxes) == 2 * CELLS and max(float(b.get("x", 0)) for b in boxes) < WIDEST
    assert len({b.get("y") for b in boxes}) == 4  # expected and found, in two lines
    indices = [t.text for t in root.iter(f"{SVG}text") if t.get("class") == "index"]
    assert indices == [str(i) for i in range(CELLS)]


def test_many_clauses_and_facts_go_on_in_the_next_line() -> None:
    many = " ".join(f"RING-{n}" for n in range(1, 24))
    root = ElementTree.fromstring(draw_svg([step("append 1", many, {"result": "ok", "offset": 3})]))
    cites = [t for t in root.iter(f"{SVG}text") if t.get("class") == "cites"]
    assert len(cites) == 23 and len({t.get("y") for t in cites}) > 1
    assert max(float(t.get("x", 0)) for t in cites) < WIDEST


def test_the_step_that_fails_is_marked_and_no_other() -> None:
    root = ElementTree.fromstring(draw_svg(dead_steps()))
    marked = [g for g in root.iter(f"{SVG}g") if any(r.get("class") == "fails" for r in g.findall(f"{SVG}rect"))]
    assert [g.findtext(f"{SVG}text[@class='number']") for g in marked] == [str(len(dead_steps()))]
