"""The laws of drafts and rounds."""

from __future__ import annotations

from functools import partial

from hypothesis import strategies as st

from kvconform.laws.caches import difference, start, trace
from kvconform.laws.law import Sides, register
from kvspec.geometry import Config
from kvspec.operations.table import caches_with

law = partial(register, needs=("draft",), kinds=caches_with("speculate"), compare=difference)


def _round(calls: list[int], kept: int) -> list[str]:
    """A round on A: one draft call for each number of rows; `kept` rows of all together are kept."""
    return ["speculate r A", *(f"draft r {n}" for n in calls), f"commit r {kept}"]


def _drafts(draw: st.DrawFn) -> tuple[int, int]:
    """Drafts of a round, and how many of them are kept."""
    drafted = draw(st.integers(0, 7))
    return drafted, draw(st.integers(0, drafted))


@law("DRAFT-29")
def round_append(draw: st.DrawFn, config: Config) -> Sides:
    """Rows that a round keeps, or that are appended at once."""
    before, _ = start(draw)
    drafted, kept = _drafts(draw)
    return Sides(trace(config, *before, *_round([drafted], kept)), trace(config, *before, f"append {kept}"))


@law("DRAFT-30")
def round_nothing(draw: st.DrawFn, config: Config) -> Sides:
    """A round that keeps nothing, or none."""
    before, _ = start(draw)
    isolated, end = draw(st.sampled_from((("", "commit r 0"), ("", "abandon r"), (" isolated=1", "abandon r"))))
    drafts = f"draft r {draw(st.integers(0, 7))}"
    return Sides(trace(config, *before, f"speculate r A{isolated}", drafts, end), trace(config, *before))


@law("DRAFT-31")
def round_split(draw: st.DrawFn, config: Config) -> Sides:
    """Drafts in several calls, or in one."""
    before, _ = start(draw)
    calls = draw(st.lists(st.integers(0, 3), min_size=2, max_size=4))
    kept = draw(st.integers(0, sum(calls)))
    several, one = _round(calls, kept), _round([sum(calls)], kept)
    return Sides(trace(config, *before, *several), trace(config, *before, *one))


@law("DRAFT-32")
def two_rounds(draw: st.DrawFn, config: Config) -> Sides:
    """Two rounds, or one that keeps as many rows as both."""
    before, _ = start(draw)
    (a, m), (b, n) = _drafts(draw), _drafts(draw)
    two, one = [*_round([a], m), *_round([b], n)], _round([a + b], m + n)
    return Sides(trace(config, *before, *two), trace(config, *before, *one))
