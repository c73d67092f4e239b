"""The settings of a run: which adapter, which part of the suite, with what limits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kvconform.generate.amounts import SEED, TRACES
from kvconform.runner.verdict.known import KnownDeviation
from kvconform.worker.client import python_worker
from kvspec.contract import CHAPTERS
from kvspec.errors import BadInput
from kvspec.outside import did_you_mean
from kvspec.reading import clauses
from kvspec.reading.clauses import Clause, withdrawn
from kvspec.registry import LETTERS


@dataclass(frozen=True)
class Settings:
    """What to run. `command` starts a process adapter; without it `adapter` names a Python one."""

    adapter: str
    command: tuple[str, ...] = ()
    traces: int = TRACES
    """Traces that each exploration draws."""
    seed: int = SEED
    chapters: tuple[str, ...] = ()
    clauses: tuple[str, ...] = ()
    level: str | None = None
    deadline: float = 20.0
    """Seconds that the adapter has for one operation."""
    memory_limit: int = 4 << 30
    """Bytes that the adapter may hold resident."""
    cover_traces: int = 0
    """Cover traces judged of each chapter, a sample of all; 0 for all."""
    quick: bool = False
    """Whether the run leaves out the whole system, so that a record must say what else it leaves out."""
    known: tuple[KnownDeviation, ...] = ()
    """Failures that are expected."""
    max_failures: int = 0
    """Checks that may fail before the run stops; 0 for any number."""
    minutes: float = 0.0
    """Minutes after which the run stops; 0 for no limit."""
    again: tuple[str, ...] = ()
    """Judge only these checks, which failed in the run before; if there are none, judge all."""

    said: str = ""
    """What the adapter said of itself when the run began; in each process that judges it must say the same."""

    @property
    def alone(self) -> frozenset[str]:
        """The clauses for which a sample of the traces that concern them is judged; none if all traces are."""
        return frozenset(self.clauses if self.cover_traces else ())

    @property
    def argv(self) -> list[str]:
        """The command line of the worker."""
        return list(self.command) or python_worker(self.adapter)

    def selected(self) -> dict[str, Clause]:
        """The clauses selected. Raises BadInput for a chapter or clause that does not exist."""
        known = clauses.index()
        for name in self.chapters:
            require_known("chapter", name, CHAPTERS)
        for name in self.clauses:
            require_known("clause", name, tuple(known))
        chapters = self.chapters or CHAPTERS
        wanted = self.clauses or known
        return {i: c.on(chapters) for i, c in known.items() if c.claimed(chapters) and i in wanted}

    def shown_by(self, selected: Iterable[Clause]) -> set[str]:
        """The chapters whose traces show these clauses, as far as they are selected."""
        return {chapter for clause in selected for chapter in clause.chapters} & {*(self.chapters or CHAPTERS)}

    def to_json(self) -> dict[str, object]:
        """The selection, for the record."""
        return {
            "chapters": list(self.chapters or CHAPTERS),
            "clauses": list(self.clauses),
            "traces": self.traces,
            "seed": self.seed,
            "level": self.level,
            **({"left out": self.left_out()} if self.quick or self.again else {}),
            **({"again": list(self.again)} if self.again else {}),
        }

    def left_out(self) -> str:
        """What a run of a part leaves out."""
        if self.again:
            return f"all but the checks that failed in the run before ({len(self.again)})"
        covers = f"most traces of each chapter's covers (about {self.cover_traces} were judged)"
        explored = f"most of each exploration ({self.traces} were judged)"
        return f"{covers}, {explored}, large traces, walks of many rows at once, and traces that mix all chapters"


def require_known(what: str, name: str, known: Sequence[str]) -> None:
    """Raise BadInput for a name that is not among those known, with the names that are most like it."""
    if name not in known:
        if why := withdrawn().get(name):
            raise BadInput(f"{what} {name} was withdrawn: {why}")
        if meant := _of_letters(name, known) or did_you_mean(name, known):
            raise BadInput(f"unknown {what} {name!r:.60}{meant}")
        near = [k for k in known if k.startswith(name.upper().partition("-")[0] + "-")] or known
        shown = ", ".join(known) if len(known) < 10 else f"{near[0]} to {near[-1]}; see `kvconform list`"
        raise BadInput(f"unknown {what} {name!r:.60}; known: {shown}")


def _of_letters(name: str, known: Sequence[str]) -> str:
    """The chapter whose clauses begin with these letters, as `did_you_mean` has it; empty if there is none."""
    chapter = LETTERS.get(name.upper(), "")
    return f"; did you mean {chapter}?" if chapter in known else ""
