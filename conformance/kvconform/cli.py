"""The command line. Results go to standard output, everything else to standard error.

Exit status:

- 0: it conforms.
- 1: a clause is broken, or the adapter does something that it does not claim.
- 2: usage.
- 3: the harness failed, or nothing was exercised.
- 4: the adapter cannot run here.
- 130: interrupted; the results so far are kept.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, NoReturn, Self

from kvconform.commands.options import COMMANDS, GROUPS, Command
from kvconform.commands.standard_streams import lasting, lost
from kvconform.message import tell
from kvconform.version import SUITE_VERSION
from kvconform.worker.signals import handling, interrupt

USAGE = """\
usage: kvconform COMMAND ...            kvconform COMMAND --help has its options
       kvconform --version

The conformance suite for transformer KV caches."""
"""The first lines of the help."""

BEGIN = "Begin with `kvconform demo`, then `kvconform new-adapter my-engine`."
"""The last line of the help."""

IMPATIENCE = 10.0
"""Seconds after an interruption in which further ones are ignored, while the judgements are written."""


class Parser(argparse.ArgumentParser):
    """Reports usage errors in one line that points to `--help`, and exits with status 2. Options cannot be
    shortened."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "allow_abbrev": False})

    def error(self, message: str) -> NoReturn:
        """Write what is wrong and exit with status 2."""
        sys.stderr.write(f"{self.prog}: {_with_hint(message)}; see `{self.prog} --help`\n")
        raise SystemExit(2)

    def unknown(self, words: Sequence[str]) -> NoReturn:
        """Report words that are none of its arguments, with the option that the first is most like."""
        if not words[0].startswith("-"):
            self.error(f"unrecognized arguments: {' '.join(words)}: {words[0]!r:.60} is one name too many")
        from kvspec.outside import did_you_mean  # `--help` is quick

        meant = did_you_mean(words[0], re.findall(r"--[\w-]+", self.format_help()), 1)
        self.error(f"unrecognized arguments: {' '.join(words)}{meant}")


class OfCommand(Parser):
    """The parser of one command, or of a part of it. The options of a command are added when they are first
    needed."""

    _add: Callable[[argparse.ArgumentParser], None] | None = None

    def __init__(self, command: Command | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        if command:
            self.description, self._add = command.help, command.add_arguments
            self.set_defaults(parser=self)

    def filled(self) -> Self:
        """Give itself with its options."""
        if self._add:
            add, self._add = self._add, None
            add(self)
        return self

    def parse_known_args(self, *given: Any, **how: Any) -> Any:
        """Read a line."""
        return super(OfCommand, self.filled()).parse_known_args(*given, **how)

    def format_help(self) -> str:
        """Give the help."""
        return super(OfCommand, self.filled()).format_help()


class Top(Parser):
    """The parser of all commands: its help has them in groups."""

    def format_help(self) -> str:
        """Give usage, what each command does, and where to begin."""
        groups = [
            "\n".join([f"{title}:", *(f"  {name:<13}{command.help}" for name, command in commands.items())])
            for title, commands in GROUPS.items()
        ]
        return "\n\n".join([USAGE, *groups, BEGIN]) + "\n"


class Versions(argparse.Action):
    """Print the versions of suite and spec, and stop."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> None:
        """Import the spec only now: `--help` is quick."""
        from kvspec import SPEC_VERSION

        print(f"kvconform {SUITE_VERSION}, spec {SPEC_VERSION}")
        parser.exit()


def _with_hint(message: str) -> str:
    """The message for an unknown choice: it names the most similar choices instead of all."""
    choice = re.fullmatch(r"(.*invalid choice: '(.*)') \(choose from (.*)\)", message)
    if choice is None:
        return message
    from kvspec.outside import did_you_mean

    meant = did_you_mean(choice[2], re.findall(r"[\w-]+", choice[3]))
    return f"{choice[1]}{meant}" if meant else message


def parser() -> argparse.ArgumentParser:
    """Build the parser of all commands and their options."""
    top = Top(prog="kvconform")
    top.add_argument("--version", action=Versions, nargs=0, help="print the versions of suite and spec, and stop")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=OfCommand)
    for name, command in COMMANDS.items():
        commands.add_parser(name, help=command.help, command=command)
    if "_ARGCOMPLETE" in os.environ:  # set by the shell while it completes a line: see docs/commands.md
        import argcomplete

        for of_command in commands.choices.values():
            of_command.filled()
        argcomplete.autocomplete(top)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    if os.name != "posix":
        return _told("kvconform needs Linux: on Windows, run it in WSL; see docs/platforms.md", 4)
    with lasting():
        heard = _heard(whole=arguments is None)
        status = _main(list(sys.argv[1:] if arguments is None else arguments), heard)
        if why := lost(sys.stdout):
            status = _told(f"standard output cannot be written: {why}", 3)
        if sys.flags.inspect:  # PYTHONINSPECT would replace our exit status by an interpreter's
            os._exit(status)
        return status


def _heard(whole: bool) -> list[signal.Signals]:
    """Give the signals that end a command. If the command is the whole process, they are ignored once it has ended:
    a signal while Python exits would replace our status."""
    ends = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    heard = [s for s in ends if signal.getsignal(s) is not signal.SIG_IGN]  # nohup ignores one for us
    for number in heard if whole else ():
        signal.signal(number, signal.SIG_IGN)
    return heard


def _main(given: list[str], heard: Sequence[signal.Signals]) -> int:
    if not given:
        parser().print_help()
        return 0
    process: tuple[str, ...] = ()
    if "--" in given:
        cut = given.index("--")
        given, process = given[:cut], tuple(given[cut + 1 :])
    if option := _without_value(given):
        return _told(f"{option}: an empty text is no value; is a variable not set?", 2)
    with handling(interrupt, *heard, deaf=IMPATIENCE):
        try:
            options, unknown = parser().parse_known_args(given)
            if unknown:
                options.parser.unknown(unknown)
            return _run(options, process, given)
        except SystemExit as e:
            return e.code if isinstance(e.code, int) else _told(str(e.code), 3) if e.code else 0
        except KeyboardInterrupt:
            return _told("interrupted", 130)


def _without_value(given: Sequence[str]) -> str | None:
    """Give the option that an empty text is given to, as by `--report "$DIR"` where there is no DIR."""
    written_out = (word[:-1] for word in given if re.fullmatch(r"--[\w-]+=", word))
    behind = (word for word, next_one in pairwise(given) if word.startswith("-") and not next_one)
    return next(chain(written_out, behind), None)


def _run(options: argparse.Namespace, process: tuple[str, ...], given: Sequence[str]) -> int:
    from kvspec.errors import BadInput

    try:
        options = _completed(options, process, given)
    except BadInput as e:
        return _told(str(e), 2, options.command)
    _announce(options)
    if getattr(options, "model", None):  # read by numpy, once: the matrices are small, and the engine needs cores
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        room = COMMANDS[options.command].room
        command = importlib.import_module(f"{room}.commands.{options.command.replace('-', '_')}")
        return int(command.main(options))
    except Exception as e:
        return _told(*_meaning(e, options))


def _completed(options: argparse.Namespace, process: tuple[str, ...], given: Sequence[str]) -> argparse.Namespace:
    """Give the options with those of the project's file, and with the command behind `--`. Raises BadInput unless
    they name one adapter where a command takes one."""
    from kvspec.errors import BadInput

    if options.command in ("run", "smoke"):
        from kvconform.commands import project

        options, process = project.completed(parser(), given, options, process)
    if options.command in ("run", "smoke", "replay", "prove"):
        count = sum(map(bool, (options.adapter, process, *_whole_engines(options))))
        if count > 1 or not (count or options.command == "replay"):
            raise BadInput("name one adapter, or a command after --")
        options.process = process
    return options


def _whole_engines(options: argparse.Namespace) -> list[str | None]:
    return [getattr(options, name, None) for name in ("server", "engine")]


def _announce(options: argparse.Namespace) -> None:
    """Say what is judged or measured: the first answer takes seconds."""
    if options.command == "demo":
        tell("judging a ring with one bug")
    if options.command in ("run", "smoke", "prove", "profile") and not getattr(options, "quiet", False):
        doing = "profiling" if options.command == "profile" else "judging"
        named = next(filter(None, (options.adapter, *_whole_engines(options))), None)
        tell(f"{doing} {named or options.process[0]}")


def _told(line: str, status: int, command: str = "") -> int:
    tell(line, command)
    return status


def _meaning(error: Exception, options: argparse.Namespace) -> tuple[str, int]:
    """Give what an exception means: a line, and the exit status. An unexpected exception is a failure of the
    harness."""
    from concurrent.futures import BrokenExecutor

    from kvconform.worker.process import WorkerFailure
    from kvspec.errors import BadInput, CannotRun

    if isinstance(error, BadInput):
        return str(error), 2
    if isinstance(error, CannotRun):
        return f"{getattr(options, 'adapter', None) or 'it'} cannot run here: {error}", 4
    if isinstance(error, WorkerFailure):
        command = getattr(options, "process", None) or ["the adapter"]
        named = getattr(options, "adapter", None) or command[0]
        return f"{named}: its worker does not start: {error.verdict}: {error}", 2
    if isinstance(error, BrokenExecutor):
        return str(error), 3
    return _unexpected(error), 3


def _unexpected(error: Exception) -> str:
    """Tell an error in one line with its place; with KVCONFORM_TRACEBACK set, its traceback too."""
    if os.environ.get("KVCONFORM_TRACEBACK"):
        traceback.print_exception(error)
    *_, last = traceback.extract_tb(error.__traceback__) or [None]
    place = f" at {Path(last.filename).name}:{last.lineno}" if last else ""
    said = " ".join(str(error).split())[:300]
    return (
        f"the harness failed: {type(error).__name__}{place}: {said}; KVCONFORM_TRACEBACK=1 shows where it came from"
    )


if __name__ == "__main__":
    sys.exit(main())
