"""The command line. Results go to standard output, everything else to standard error.

Exit status: 0 conforms; 1 a clause is broken; 2 usage; 3 the harness failed, or nothing was exercised; 4 the
adapter cannot run here; 130 interrupted (the results so far are kept).
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from kvconform.commands.options import COMMANDS
from kvconform.worker.signals import handling, interrupt


class Parser(argparse.ArgumentParser):
    """Reports usage errors in one line that points to `--help`, and exits with status 2. Options cannot be
    shortened."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "allow_abbrev": False})

    def error(self, message: str) -> NoReturn:
        """Write what is wrong and exit with status 2."""
        sys.stderr.write(f"{self.prog}: {message}; see `{self.prog} --help`\n")
        raise SystemExit(2)


def parser() -> argparse.ArgumentParser:
    """Build the parser of all commands and their options."""
    top = Parser(prog="kvconform", description="The conformance suite for transformer KV caches.")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        command.add_arguments(commands.add_parser(name, help=command.help))
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    process: tuple[str, ...] = ()
    if "--" in given:
        cut = given.index("--")
        given, process = given[:cut], tuple(given[cut + 1 :])
    try:
        with handling(interrupt, signal.SIGINT, signal.SIGTERM):
            return _run(parser().parse_args(given), process)
    except SystemExit as e:
        return int(e.code or 0)
    except KeyboardInterrupt:
        sys.stderr.write("kvconform: interrupted\n")
        return 130


def _run(options: argparse.Namespace, process: tuple[str, ...]) -> int:
    if options.command in ("run", "smoke", "replay", "prove"):
        if bool(options.adapter) + bool(process) > 1 or not (
            options.adapter or process or options.command == "replay"
        ):
            sys.stderr.write(f"kvconform {options.command}: name one adapter, or a command after --\n")
            return 2
        options.process = process
    if options.command in ("run", "smoke", "prove", "profile"):
        doing = "profiling" if options.command == "profile" else "judging"
        sys.stderr.write(f"kvconform: {doing} {options.adapter or process[0]}\n")
        sys.stderr.flush()
    from concurrent.futures import BrokenExecutor

    from kvspec.errors import BadInput, CannotRun

    try:
        command = importlib.import_module(f"kvconform.commands.{options.command.replace('-', '_')}")
        return int(command.main(options))
    except BrokenExecutor as e:
        sys.stderr.write(f"kvconform: {e}\n")
        return 3
    except BadInput as e:
        sys.stderr.write(f"kvconform: {e}\n")
        return 2
    except CannotRun as e:
        sys.stderr.write(f"kvconform: {getattr(options, 'adapter', None) or 'the adapter'} cannot run here: {e}\n")
        return 4
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader of standard output is gone
        return 0


if __name__ == "__main__":
    sys.exit(main())
