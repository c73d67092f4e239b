"""Arguments that several commands have, the values that arguments may have, and options that would do nothing: an
adapter has some of those of `run`, and a whole engine has others."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import Any

FORMATS = ("table", "json", "markdown")

OF_ENGINES = ("server", "engine", "model", "requests", "declare", "dtype", "rows")
"""What only a whole engine has, by the names of the options."""

SHARED = ("seed", "maxfail", "report", "format", "quiet")
"""Options that both sorts of run take."""


def add_adapter(parser: ArgumentParser) -> None:
    """Add the adapter: its name, or the command behind `--` that starts its worker."""
    parser.usage = f"{parser.prog} [options] (ADAPTER | -- COMMAND ...)"
    adapter: Any = parser.add_argument("adapter", nargs="?", help="a name (see `kvconform list`) or module:Class")
    adapter.completer = adapter_names


def add_chapter(parser: ArgumentParser, help: str) -> None:
    """Add a chapter, which may be named several times."""
    chapter: Any = parser.add_argument("--chapter", action="append", default=[], help=help)
    chapter.completer = chapter_names


def adapter_names(**_: object) -> list[str]:
    """The names of adapters, for shells that complete a line."""
    from kvadapters import find  # `--help` is quick

    return sorted(find.names())


def chapter_names(**_: object) -> list[str]:
    """The names of chapters, for shells that complete a line."""
    from kvspec.chapters import CHAPTERS

    return list(CHAPTERS)


def add_deadline(parser: ArgumentParser) -> None:
    """Add the time limit of an operation."""
    parser.add_argument("--deadline", type=seconds, default=20.0, help="seconds for one operation (20)")


def add_level(parser: ArgumentParser) -> None:
    """Add the level to judge at."""
    parser.add_argument(
        "--visible",
        dest="level",
        action="store_const",
        const="visible",
        help="judge at level visible, even if the adapter claims more",
    )


def add_known(parser: ArgumentParser) -> None:
    """Add the file of known deviations."""
    parser.add_argument(
        "--known", type=Path, metavar="FILE", help="file of known deviations (kvconform.toml, if it exists)"
    )


def add_report(parser: ArgumentParser, files: str) -> None:
    """Add the folder to write the record and its renderings into."""
    parser.add_argument("--report", metavar="DIR", help=f"write {files} into this folder")


def add_pool(parser: ArgumentParser, help: str) -> None:
    """Add the options that say where tasks run: on processes here, or on a cluster."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--processes", type=above_zero, metavar="N", help=help)
    where.add_argument(
        "--on",
        metavar="ADDRESS",
        help="run on the dask cluster of this scheduler, such as tls://host:8786. Over tcp:// anybody who reaches "
        "its port can run code here and there: use tcp:// only in a network that you trust",
    )


def add_format(parser: ArgumentParser) -> None:
    """Add the output format."""
    parser.add_argument("--format", choices=FORMATS, default="table", help="output format (table)")
    parser.add_argument("--json", action="store_const", dest="format", const="json", help="as --format json")


def add_unclaimed(parser: ArgumentParser) -> None:
    """Add the option that lists unclaimed clauses in the table."""
    parser.add_argument(
        "--unclaimed", action="store_true", help="also list the clauses that are not claimed, and why"
    )


MOST = 1 << 40
"""The highest count that an option takes."""


def count(text: str) -> int:
    """Read a whole number of 0 or more. Raises ArgumentTypeError."""
    if not (text.isascii() and text.isdigit()):
        raise ArgumentTypeError(f"{text!r:.40} is not a whole number of 0 or more")
    if len(text) > len(str(MOST)) or int(text) > MOST:
        raise ArgumentTypeError(f"{text!r:.40} is more than {MOST}")
    return int(text)


def above_zero(text: str) -> int:
    """Read a whole number of 1 or more. Raises ArgumentTypeError."""
    if (number := count(text)) == 0:
        raise ArgumentTypeError("it must be 1 or more")
    return number


def window(text: str) -> int:
    """Read the largest window of a proof. Raises ArgumentTypeError."""
    return _at_most(64, above_zero(text))


def extra_states(text: str) -> int:
    """Read the extra states of a proof. Raises ArgumentTypeError."""
    return _at_most(16, count(text))


def _at_most(most: int, number: int) -> int:
    if number > most:
        raise ArgumentTypeError(f"it is at most {most}: nobody could wait for more")
    return number


def seconds(text: str) -> float:
    """Read a number of seconds above 0. Raises ArgumentTypeError."""
    return _time(text, "seconds")


def minutes(text: str) -> float:
    """Read a number of minutes above 0. Raises ArgumentTypeError."""
    return _time(text, "minutes")


def _time(text: str, unit: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e6:
        raise ArgumentTypeError(f"{text!r:.40} is not a number of {unit} above 0 and below a million")
    return number


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
        from kvspec.errors import BadInput  # `--help` is quick

        word = {"adapter": "the name of an adapter", "process": "a command after --"}
        raise BadInput(f"{why} {word.get(names[0], '--' + names[0].replace('_', '-'))}")
