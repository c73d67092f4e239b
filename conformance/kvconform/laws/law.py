"""What a law is: a clause that relates two traces, which must end alike.

Each law draws a left and a right trace. The project's own tests prove them on the list model and the reference. An
adapter is given both sides as ordinary traces, and its end states are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hypothesis import strategies as st

from kvconform.generate.strategies.configs import configs
from kvconform.judge.levels import visible
from kvconform.judge.trial_result import TrialResult
from kvspec.geometry import Config
from kvspec.notation import operation
from kvspec.reading.clauses import index
from kvspec.trace import Trace


class Sides(NamedTuple):
    """The two traces that a law relates."""

    left: Trace
    right: Trace


Results = tuple[TrialResult, TrialResult]
"""The trials of both sides on an adapter."""

Compare = Callable[[Sides, Results], str]
"""Says how the ends of two sides differ; empty if they do not."""

Draw = Callable[[st.DrawFn, Config], Sides]
"""Draws both sides on a configuration."""


@dataclass(frozen=True)
class Law:
    """A clause that relates two traces."""

    clause: str
    needs: tuple[str, ...]
    """The chapters that the sides use; the first is the kind of cache they are drawn on."""
    sides: Draw
    configs: Callable[[], st.SearchStrategy[Config]] | None
    """The configurations that sides are drawn on; None for any of a growing cache or a ring."""
    compare: Compare

    @property
    def kind(self) -> str:
        """The kind of cache that sides are drawn on."""
        return self.needs[0]

    @property
    def chapter(self) -> str:
        """The chapter that draws it: its clause's own, or its kind if the clause is a general one."""
        clause = index()[self.clause]
        return self.kind if clause.general else clause.chapter

    @property
    def check(self) -> str:
        """The id of the check that draws it."""
        return f"{self.chapter}/law/{self.clause}/{self.kind}"

    def strategy(self) -> st.SearchStrategy[Sides]:
        """Sides on any configuration."""

        @st.composite
        def sides(draw: st.DrawFn) -> Sides:
            return self.sides(draw, draw(self.configs() if self.configs else configs(self.kind)))

        return sides()


LAWS: list[Law] = []
"""The laws of all files that were imported; `registry` imports all there are, and puts them in order."""


def register(
    clause: str,
    *,
    needs: tuple[str, ...] = (),
    kinds: tuple[str, ...] = (),
    configs: Callable[[], st.SearchStrategy[Config]] | None = None,
    compare: Compare,
) -> Callable[[Draw], Draw]:
    """Decorate a function that draws both sides: it becomes a law of this clause, one for each of `kinds`."""

    def registered(sides: Draw) -> Draw:
        every = [(kind, *needs) for kind in kinds] or [needs]
        LAWS.extend(Law(clause, each, sides, configs, compare) for each in every)
        return sides

    return registered


def trace(kind: str, config: Config, *texts: str) -> Trace:
    """A trace of these operations."""
    return Trace(kind, config, tuple(map(operation, texts)))


def of_ends(compare: Compare) -> Compare:
    """Decorate a comparison that needs both sides to come to their ends: a side that stopped, or whose last step
    was not done, is the difference."""

    def difference(sides: Sides, results: Results) -> str:
        for name, side, result in zip(Sides._fields, sides, results, strict=True):
            want, got = result.steps[-1]
            if len(result.steps) < len(side.ops) or want.result != got.result:
                return f"the {name} side failed at step {len(result.steps)}"
        return compare(sides, results)

    return difference


def unequal(left: object, right: object) -> str:
    """That the ends differ; empty if they are equal."""
    return "" if left == right else f"the left side leaves {left}, the right side {right}"


DISAGREE = "keys and values that do not agree"
"""The words for rows with different names in keys and values, or in different heads."""


def positions(result: TrialResult, name: str, expected: Sequence[int]) -> str:
    """The rows of an array in the end, by their positions in the list model; `?` for a row that should not be
    there. Sequences that hold the same are shown once."""
    arrays = result.steps[-1][1].arrays
    names = visible.one_name_each(arrays.get(f"{name}.k"), arrays.get(f"{name}.v"), result.book)
    if names is None:
        return DISAGREE
    each = [" ".join(str(expected.index(s)) if s in expected else "?" for s in sequence) for sequence in names]
    return ", ".join(dict.fromkeys(each)) or "nothing"
