"""Judge an adapter from Python: `kvconform.run("my_engine:Adapter", quick=True)` gives the record of a run.

The record shows itself: `print` shows what `kvconform run` prints, a notebook shows the report. It has the fields
of `kvspec.records.run.Record`: a script reads `record.summary` or `record.failures`.
"""

from __future__ import annotations

import html
from argparse import ArgumentParser, Namespace
from collections.abc import Collection
from pathlib import Path
from typing import Any, NoReturn

from kvconform.commands import next_command
from kvconform.commands import run as command
from kvconform.commands.options import COMMANDS
from kvconform.runner.record import output
from kvspec.errors import BadInput
from kvspec.records.run import Record

HEIGHT = 720
"""Pixels of the report in a notebook."""


class ShownRecord(Record):
    """The record of a run, which shows itself."""

    @property
    def conforms(self) -> bool:
        """Tell whether the adapter conforms in what was judged: `kvconform run` would end with status 0."""
        return self.exit_status == 0

    def __repr__(self) -> str:
        return f"<{next_command.headline(self)}>"

    def __str__(self) -> str:
        return output.text([self], "table")

    def _repr_html_(self) -> str:
        """The report in a frame of its own, so that its styles and those of the notebook stay apart."""
        page = html.escape(output.page([self]))
        return f'<iframe srcdoc="{page}" style="width:100%;height:{HEIGHT}px;border:0"></iframe>'


def run(
    adapter: str | type,
    *,
    quick: bool = False,
    chapters: Collection[str] = (),
    clauses: Collection[str] = (),
    known: str | Path | None = None,
    seed: int = 0,
    processes: int | None = None,
    report: str | Path | None = None,
) -> ShownRecord:
    """Judge an adapter as `kvconform run` does, without progress, and give the record.

    `adapter` is a name, `module:Class`, or the class itself. The other arguments are options of `kvconform run`:
    `quick` judges a small share of the traces, `chapters` and `clauses` these alone. `known` is a file of known
    deviations, `report` a folder for the record and its pages. `processes` judge at once (default: one per core, up
    to 4). An interruption gives the record of what was judged until then, which is partial. Raises BadInput for a
    name that is not there and for an adapter that does not start, CannotRun where its device is missing.
    """
    given = {"known": known, "seed": seed, "processes": processes, "report": report}
    options = _options(name_of(adapter), quick, chapters, clauses, given)
    _, record = command.judged(options)
    if write := command.writing(record, options):
        write()
    return ShownRecord(**{name: getattr(record, name) for name in record.__struct_fields__})


def name_of(adapter: str | type) -> str:
    """Name an adapter so that another process finds it. Raises BadInput for a class that is in no module's file."""
    if isinstance(adapter, str) and adapter:
        return adapter
    if not isinstance(adapter, type):
        raise BadInput(f"an adapter is given by its class or its name, not by {adapter!r:.60}")
    if adapter.__module__ == "__main__" or "<" in adapter.__qualname__:
        raise BadInput(
            f"{adapter.__qualname__}: an adapter is judged in processes of its own, which import it; "
            "write its class into a file, at the top level, and import it from there"
        )
    return f"{adapter.__module__}:{adapter.__qualname__}"


class _Parser(ArgumentParser):
    """Raises BadInput for what the command would end with status 2 for."""

    def error(self, message: str) -> NoReturn:
        raise BadInput(message.removeprefix("argument --"))


def _options(
    name: str, quick: bool, chapters: Collection[str], clauses: Collection[str], given: dict[str, Any]
) -> Namespace:
    """The options of `kvconform run`. Raises BadInput."""
    words = ["--quiet", *["--quick"] * bool(quick)]
    for what, each in (("chapter", chapters), ("clause", clauses)):
        if isinstance(each, str) or not isinstance(each, Collection):
            raise BadInput(f"{what}s must be a list: {what}s=[{each!r:.60}]")
        words += [f"--{what}={value}" for value in each]
    words += [_word(option, value) for option, value in given.items() if value is not None]
    parser = _Parser("kvconform.run")
    COMMANDS["run"].add_arguments(parser)
    return parser.parse_args([*words, "--", name], Namespace(process=()))


def _word(option: str, value: Any) -> str:
    """An option as the command takes it. Raises BadInput for a file or a folder that is named by no text."""
    if option in ("known", "report") and not (isinstance(value, str | Path) and str(value)):
        raise BadInput(f"{option} is the name of a file or a folder, not {value!r:.60}")
    return f"--{option}={value}"
