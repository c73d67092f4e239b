"""Options that would do nothing: an adapter has some of those of `run`, and a whole engine has others."""

from __future__ import annotations

from argparse import Namespace

from kvspec.errors import BadInput

OF_ENGINES = ("server", "engine", "model", "requests", "declare", "dtype", "rows")
"""What only a whole engine has, by the names of the options."""

SHARED = ("seed", "maxfail", "report", "format", "quiet")
"""Options that both sorts of run take."""


def refuse_of_engines(options: Namespace) -> None:
    """Raise BadInput for an option that only a whole engine has."""
    _refuse(
        [name for name in _given(options) if name in OF_ENGINES], "without --server or --engine there is no use for"
    )


def refuse_of_adapters(options: Namespace) -> None:
    """Raise BadInput for an option that only an adapter has."""
    wrong = [name for name in _given(options) if name not in (*OF_ENGINES, *SHARED)]
    _refuse(wrong, "a whole engine is judged without")


def refuse_without_adapter(options: Namespace) -> None:
    """Raise BadInput for an option of a replay that only an adapter has: the reference replays without."""
    names = [name for name in _given(options) if name in ("after", "known", "deadline")]
    _refuse(names, "without an adapter there is no use for")


def _given(options: Namespace) -> list[str]:
    """Name the options that differ from their defaults. Another command that makes such options has no parser, and
    gave none of them."""
    if "parser" not in options:
        return []
    usual = {name: options.parser.get_default(name) for name in vars(options) if name not in ("parser", "command")}
    words = {name: getattr(options, name) for name in usual} | {"process": list(options.process) or None}
    return [name for name, value in words.items() if value != usual[name]]


def _refuse(names: list[str], why: str) -> None:
    if names:
        word = {"adapter": "the name of an adapter", "process": "a command after --"}
        raise BadInput(f"{why} {word.get(names[0], '--' + names[0].replace('_', '-'))}")
