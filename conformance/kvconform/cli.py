"""The command line. Standard output carries results alone, standard error everything said on the way.

Exit status: 0 conforms; 1 a clause is broken; 2 usage; 3 the harness failed, or nothing was exercised; 4 the
adapter cannot run here; 130 interrupted (what was judged is kept).
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

FORMATS = ("table", "json", "markdown")


class Parser(argparse.ArgumentParser):
    """Usage errors end with status 2 and one line that says where to look. Options are written in full."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "allow_abbrev": False})

    def error(self, message: str) -> NoReturn:
        """Say what was wrong."""
        sys.stderr.write(f"{self.prog}: {message}; see `{self.prog} --help`\n")
        raise SystemExit(2)


def parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    top = Parser(prog="kvconform", description="The conformance suite for transformer KV caches.")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    run = commands.add_parser(
        "run", help="judge an adapter", usage="kvconform run [options] (ADAPTER | -- COMMAND ...)"
    )
    run.add_argument("adapter", nargs="?", help="a name (see `kvconform list`) or module:Class")
    run.add_argument("--profile", action="append", default=[], help="only this profile (repeatable)")
    run.add_argument("--clause", action="append", default=[], help="only this clause (repeatable)")
    run.add_argument("--examples", type=_count, default=100, help="traces drawn by each exploration (100)")
    run.add_argument("--seed", type=_count, default=0, help="seed of what is drawn (0)")
    run.add_argument("--level", choices=("visible",), help="judge at this level, though more is claimed")
    run.add_argument("--report", metavar="DIR", help="write record.json, report.html, report.md and more there")
    run.add_argument(
        "--deadline", type=_seconds, default=20.0, help="seconds the adapter has for one operation (20)"
    )
    run.add_argument("--memory", type=_count, default=4096, help="MiB the adapter may hold resident (4096)")
    _format(run)

    smoke = commands.add_parser("smoke", help="a first look at a new adapter: does it speak, and of what")
    smoke.add_argument("adapter", nargs="?")

    listing = commands.add_parser("list", help="adapters, profiles, clauses")
    listing.add_argument("what", nargs="?", choices=("adapters", "profiles", "clauses"))
    _format(listing)

    explain = commands.add_parser("explain", help="a clause: what it says, why, and its worked examples")
    explain.add_argument("clause", help="an id such as RING-4, or a chapter such as RING")

    replay = commands.add_parser("replay", help="replay a trace step by step")
    replay.add_argument("trace", help="a trace file, or - for standard input")
    replay.add_argument("--adapter", help="judge this adapter on it; without one the reference shows what is right")
    replay.add_argument("--draw", action="store_true", help="draw slots and queries at each step")
    replay.add_argument("--svg", metavar="FILE", help="write the drawing as SVG")
    replay.add_argument("--level", choices=("visible",), help="judge at this level, though more is claimed")
    replay.add_argument("--deadline", type=_seconds, default=20.0)

    report = commands.add_parser("report", help="render run records, several side by side")
    report.add_argument(
        "records", nargs="+", metavar="RECORD", help="record.json, or the journal of a run cut short"
    )
    report.add_argument("--html", metavar="FILE", help="write the page there")
    _format(report)

    new = commands.add_parser("new-adapter", help="write the skeleton of an adapter package")
    new.add_argument("name")
    new.add_argument("--into", default=".", metavar="DIR", help="folder to write it into (.)")
    return top


def _format(command: argparse.ArgumentParser) -> None:
    command.add_argument("--format", choices=FORMATS, default="table", help="what is printed (table)")


def _count(text: str) -> int:
    if not text.isdigit() or int(text) > 1 << 40:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 0 or more")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; gives the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    process: tuple[str, ...] = ()
    if "--" in given:
        cut = given.index("--")
        given, process = given[:cut], tuple(given[cut + 1 :])
    try:
        options = parser().parse_args(given)
    except SystemExit as e:
        return int(e.code or 0)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return _run(options, process)


def _run(options: argparse.Namespace, process: tuple[str, ...]) -> int:
    if options.command in ("run", "smoke", "replay"):
        if bool(options.adapter) + bool(process) > 1 or not (
            options.adapter or process or options.command == "replay"
        ):
            sys.stderr.write(f"kvconform {options.command}: name one adapter, or a command after --\n")
            return 2
        options.process = process
    if options.command in ("run", "smoke"):
        sys.stderr.write(f"kvconform: judging {options.adapter or process[0]}\n")
        sys.stderr.flush()
    command = importlib.import_module(f"kvconform.commands.{options.command.replace('-', '_')}")
    from kvspec.errors import BadInput, CannotRun

    try:
        return int(command.main(options))
    except BadInput as e:
        sys.stderr.write(f"kvconform: {e}\n")
        return 2
    except CannotRun as e:
        sys.stderr.write(f"kvconform: {options.adapter or 'the adapter'} cannot run here: {e}\n")
        return 4
    except KeyboardInterrupt:
        sys.stderr.write("kvconform: interrupted\n")
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader went away; nothing more can be said to it
        return 0


if __name__ == "__main__":
    sys.exit(main())
