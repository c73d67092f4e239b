"""The result of one check, as it travels from the process that judged it to the run."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from kvconform.runner.verdict.tally import Tally, counter


@dataclass(frozen=True)
class CheckResult:
    """What one check showed."""

    check: str
    tally: Tally = field(default_factory=Tally)
    difference: str = ""
    """What differed, on the shortest trace; empty if nothing did."""
    known: str = ""
    """What differed and why, where known deviations explain all of it."""
    error: str = ""
    """The traceback, where the harness failed."""
    operations: int = 0
    seconds: float = 0.0
    memory: tuple[int, int] = (0, 0)
    """Peak resident bytes of the process that judged, and of its worker."""
    interrupted: bool = False
    """Whether its tally holds only what was judged before an interruption."""

    @property
    def unjudged(self) -> str:
        """Why no trace was judged."""
        why = "none of its traces is within what the adapter claims: its abilities, its dialects, its limits"
        return self.tally.shut_out.get(self.check, why)

    def dumps(self) -> str:
        """Write it as JSON, as the journal holds a tally: what crosses a network is read and not unpickled."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def loads(cls, text: str) -> CheckResult:
        """Read it. Raises msgspec.ValidationError."""
        return msgspec.json.decode(text, type=cls, dec_hook=counter)


def source_of(check: str) -> str:
    """Give the source of a check's traces, by its id: cover of `ring/cover/window=3`. Empty where it has none."""
    _, _, rest = check.partition("/")
    return rest.partition("/")[0]
