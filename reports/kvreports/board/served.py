"""What the board shows of whole engines: what was asked of each, what it did, and what was wrong."""

from __future__ import annotations

from dataclasses import dataclass

from kvreports.serving import parts
from kvspec.records.serving import SIZES, ServingFailure, ServingRecord

HEAD = (
    "engine",
    "version",
    "started with",
    "probe",
    "requests",
    "tokens reused",
    "blocks evicted",
    "requests preempted",
    "drafts accepted, rejected",
    "clauses that hold",
    "not exercised",
    "bugs",
)
"""The columns of the table of whole engines."""

UNTOLD = "not told"


@dataclass(frozen=True)
class ServedBug:
    """What a whole engine does wrong, and the shortest histories that show it; `script` and `draft` are addresses,
    or empty."""

    sort: str
    reason: str
    failures: tuple[ServingFailure, ...]
    link: str = ""
    script: str = ""
    draft: str = ""


@dataclass(frozen=True)
class Served:
    """The record of a whole engine in one form. `form` names both, `address` is that of the record."""

    record: ServingRecord
    form: str
    address: str
    bugs: tuple[ServedBug, ...] = ()

    @property
    def version(self) -> str:
        """The engine's version."""
        return self.record.engine.version

    @property
    def started(self) -> str:
        """Its sizes, what it computes in, and the form of its rows."""
        precision, engine = self.record.precision, self.record.engine
        rows = [f"{precision.rows} rows"] if precision.rows else []
        return ", ".join([precision.dtype, *rows, *(f"{n} {engine.get(n)}" for n in SIZES if engine.get(n))])

    @property
    def probe(self) -> str:
        """The architecture and the layers that it has loaded."""
        tokens = " (tokens alone)" if self.record.engine.tells == "tokens" else ""
        return f"{self.record.probe.architecture}: {self.record.probe.layers}{tokens}"

    @property
    def reused(self) -> str:
        """How many tokens of prompts it did not compute."""
        told = [self.record.asked.get("cached tokens told", 0), self.record.counted.get("cached tokens", 0)]
        knows = "cached" in self.record.engine.can or "cached tokens" in self.record.counted
        return str(max(told)) if knows else UNTOLD

    def counted(self, *names: str) -> str:
        """What the engine has counted itself, one number or several."""
        return ", ".join(str(self.record.counted.get(name, UNTOLD)) for name in names if self._has(name)) or ""

    def _has(self, name: str) -> bool:
        return "drafts" not in name or bool(self.record.engine.drafts)

    @property
    def unexercised(self) -> list[str]:
        """The clauses that nothing was seen of."""
        return [c.id for c in self.record.clauses if c.verdict == "NOT_RUN"]

    @property
    def row(self) -> tuple[str, ...]:
        """The cells of the table behind the first, by `HEAD`."""
        held, claimed = parts.holding(self.record)
        return (
            self.version,
            self.started,
            self.probe,
            str(self.record.asked.get("requests", 0)) + ", interrupted" * self.record.partial,
            self.reused,
            self.counted("evictions"),
            self.counted("preemptions"),
            self.counted("drafts accepted", "drafts rejected"),
            f"{held} of {claimed}",
            ", ".join(self.unexercised),
            str(len(self.bugs) or ""),
        )


def headline(served: list[Served]) -> str:
    """How many engines were judged whole, with how many requests, and how many bugs they have."""
    engines = {s.record.engine.name for s in served}
    requests = sum(s.record.asked.get("requests", 0) for s in served)
    bugs = {(s.record.engine.name, bug.reason) for s in served for bug in s.bugs}
    count = f"{len(engines)} engine{'s were' if len(engines) != 1 else ' was'} judged whole"
    return f"{count}, in {len(served)} forms, by {requests} requests. Bugs: {len(bugs) or 'none'}"
