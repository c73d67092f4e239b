"""The texts of refusals, shared by the reference and the adapters: those of `sink.toml` are `sink`, and so on.

Only the words are shared. Whether to refuse is decided where the rule is enforced, by each cache for itself,
so that one mistake is not made twice.
"""

from __future__ import annotations

from pathlib import Path

from kvspec.refusals.texts import Texts


def __getattr__(name: str) -> Texts:
    """Give the texts of a table, unless a module of its name has them and more. Raises AttributeError."""
    table = Path(__file__).with_name(f"{name}.toml")
    if not table.is_file() or table.with_suffix(".py").is_file():
        raise AttributeError(f"{__name__} has no texts {name!r}")
    return Texts(name)
