"""The suite: finds traces, replays them on oracle and adapter, judges, shrinks, records."""

from typing import TYPE_CHECKING, Any

from kvconform.version import __version__

if TYPE_CHECKING:
    from kvconform.api import run

__all__ = ["__version__", "run"]


def __getattr__(name: str) -> Any:
    """Import the public function only where it is asked for: `kvconform --help` and pytest's plugin stay quick."""
    if name == "run":
        from kvconform.api import run

        return run
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
