"""The laws of pools that find rows by content: both sides end with one request, whose rows are compared."""

from __future__ import annotations

from functools import partial

from hypothesis import strategies as st

from kvconform.generate.strategies import keyed
from kvconform.judge.trial_result import TrialResult
from kvconform.laws.law import Results, Sides, of_ends, positions, register, trace, unequal
from kvconform.oracle.follow import at_the_end
from kvspec.geometry import Config
from kvspec.trace import Trace

PAGES = 96
"""Pages of a pool: more than the requests that are drawn need."""


@of_ends
def difference(sides: Sides, results: Results) -> str:
    """How the rows of the last request differ in the end; empty if they do not. Rows are known by their position in
    the list model."""
    return unequal(*map(_rows, sides, results))


def _rows(side: Trace, result: TrialResult) -> str:
    number = result.steps[-1][0].values["sequence"]
    return positions(result, f"state.{number}", at_the_end(side).caches["A"].all[number].serials)


law = partial(register, needs=("keyed",), configs=keyed.configs, compare=difference)


def _text(draw: st.DrawFn, most: int = 9) -> str:
    return draw(st.text("xy", min_size=1, max_size=most))


def _names(draw: st.DrawFn) -> str:
    return draw(st.sampled_from(("", "", " salt=s", " adapter=s", " media=p@0")))


def _before(draw: st.DrawFn, last: str) -> list[str]:
    """Requests before the last one, which mostly begin like it; some are still there in the end."""
    ops, used = list[str](), set[int]()
    for _ in range(draw(st.integers(0, 6))):
        text = last[: draw(st.integers(1, len(last)))] + draw(st.text("xy", max_size=3))
        number = next(n for n in range(len(used) + 1) if n not in used)
        used.add(number)
        ops.append(f"request {text}{_names(draw)}")
        after = draw(st.sampled_from(("", "finish", "finish", "abort", "answer", "evict", "propose")))
        if after in ("answer", "propose"):
            ops.append(f"{after} {number} {_text(draw, 4)}")
        elif after == "evict":
            ops.append("evict 2")
        elif after:
            ops.append(f"{after} {number}")
            used.remove(number)
    return ops


@law("KEY-37")
def alone(draw: st.DrawFn, config: Config) -> Sides:
    """A request behind others, or by itself."""
    text = _text(draw)
    last, roomy = f"request {text}{_names(draw)}", config.changed(pages=PAGES)
    return Sides(trace("keyed", roomy, *_before(draw, text), last), trace("keyed", roomy, last))


@law("KEY-38")
def page_size(draw: st.DrawFn, config: Config) -> Sides:
    """Pages of two sizes, and two granules."""
    text = _text(draw)
    ops = [*_before(draw, text), f"request {text}{_names(draw)}"]
    other = config.changed(
        pages=PAGES,
        page_size=draw(st.sampled_from((1, 2, 3, 4, 5, 16, 64))),
        granule=draw(st.sampled_from(("page", "row"))),
    )
    return Sides(trace("keyed", config.changed(pages=PAGES), *ops), trace("keyed", other, *ops))
