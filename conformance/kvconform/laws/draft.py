"""The laws of drafts and rounds."""

from __future__ import annotations

from functools import partial

from hypothesis import strategies as st

from kvconform.judge.levels import visible, whole_buffer
from kvconform.judge.trial_result import TrialResult
from kvconform.laws.caches import difference, plain, start, trace
from kvconform.laws.law import DISAGREE, Results, Sides, of_ends, register, unequal
from kvconform.oracle.follow import at_the_end
from kvspec.geometry import Config
from kvspec.operations.table import caches_with, listed
from kvspec.trace import Trace

law = partial(register, needs=("draft",), kinds=caches_with("speculate"), compare=difference)
tree_law = partial(register, needs=("draft", "mask"), kinds=caches_with("speculate"))


def _round(calls: list[int], kept: int) -> list[str]:
    """A round on A. It makes one draft call for each number of rows, and keeps `kept` rows of all calls
    together."""
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


def _tree(draw: st.DrawFn) -> list[int]:
    """What each of some drafts hangs on."""
    return [draw(st.integers(-1, i - 1)) for i in range(draw(st.integers(1, 6)))]


def _way(on: list[int], draft: int) -> list[int]:
    """The drafts on the way to one, and itself."""
    return [*(_way(on, on[draft]) if on[draft] >= 0 else []), draft]


@tree_law("DRAFT-47", compare=difference)
def round_chosen(draw: st.DrawFn, config: Config) -> Sides:
    """A draft of several branches that is chosen, or an append of the rows on its way."""
    before, _ = start(draw)
    on = _tree(draw)
    draft = draw(st.integers(0, len(on) - 1))
    chosen = ["speculate r A", f"draft r {len(on)} on={listed(on)}", f"choose r {draft}"]
    return Sides(trace(config, *before, *chosen), trace(config, *before, f"append {len(_way(on, draft))}"))


@tree_law("DRAFT-48", compare=difference)
def chosen_or_committed(draw: st.DrawFn, config: Config) -> Sides:
    """A draft of one branch that is chosen, or as many that are committed."""
    before, _ = start(draw)
    drafted = draw(st.integers(1, 7))
    kept = draw(st.integers(1, drafted))
    chosen = ["speculate r A", f"draft r {drafted} on={listed(range(-1, drafted - 1))}", f"choose r {kept - 1}"]
    return Sides(trace(config, *before, *chosen), trace(config, *before, *_round([drafted], kept)))


def seen_at_last(sides: Sides, results: Results) -> str:
    """How what the last draft sees differs. Rows are known by their positions on its way."""
    left, right = (_last(side, result) for side, result in zip(sides, results, strict=True))
    return unequal(left, right)


def _last(side: Trace, result: TrialResult) -> list[str]:
    """What the newest draft sees, sequence by sequence; `?` for a row that is not on its way."""
    layer = at_the_end(side).rounds["r"].inner.layers[0]
    way = [*layer.tokens[: layer.start], *(layer.drafts[i] for i in layer.way(len(layer.hung) - 1))]
    step = result.steps[-1][1]
    names = visible.history_names(step, whole_buffer.hidden(step), result.book)
    if names is None:
        return [DISAGREE]
    mask = step.arrays.get("mask")
    seen = [[s for s, _ in visible.seen(rows, mask, (b, 0), 0) or []] for b, rows in enumerate(names)]
    return [" ".join(sorted(str(way.index(s)) if s in way else "?" for s in one)) for one in seen]


@tree_law("DRAFT-49", compare=of_ends(seen_at_last))
def only_way(draw: st.DrawFn, config: Config) -> Sides:
    """A draft behind one of several branches, or behind that branch alone."""
    before, _ = start(draw)
    on = _tree(draw)
    draft = draw(st.integers(-1, len(on) - 1))
    drafted = [*before, "speculate r A", f"draft r {len(on)} on={listed(on)}", f"draft r 1 on={draft}"]
    alone = [*before, "speculate r A", f"draft r {len(_way(on, draft)) if draft >= 0 else 0}", "draft r 1"]
    return Sides(plain(config, *drafted), plain(config, *alone))
