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
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

FORMATS = ("table", "json", "markdown")
MUTANTS = ("controls", "fakes", "catalogue", "anomalies", "reference", "gpu", "kernels")
VECTORS = ("examples", "covering", "mutants")


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
    for name, about, arguments in COMMANDS:
        arguments(commands.add_parser(name, help=about))
    return top


def _run_arguments(run: argparse.ArgumentParser) -> None:
    run.usage = "kvconform run [options] (ADAPTER | -- COMMAND ...)"
    run.add_argument("adapter", nargs="?", help="a name (see `kvconform list`) or module:Class")
    run.add_argument("--chapter", action="append", default=[], help="only this chapter (repeatable)")
    run.add_argument(
        "--clause",
        action="append",
        default=[],
        help="only this clause (repeatable): its own examples and laws, its chapter's exploration, and a sample "
        "of the covers: 500 traces, or all if those do not exercise it",
    )
    run.add_argument("--traces", type=_count, default=60, help="random traces for each exploration (60)")
    run.add_argument("--seed", type=_count, default=0, help="seed of the random traces (0)")
    run.add_argument("--level", choices=("visible",), help="judge at this level, though more is claimed")
    run.add_argument(
        "--report", metavar="DIR", help="write record.json, report.html, report.md and more into this folder"
    )
    run.add_argument(
        "--deadline", type=_seconds, default=20.0, help="seconds the adapter has for one operation (20)"
    )
    run.add_argument(
        "--memory", type=_count, default=4096, help="MiB of resident memory the adapter may use (4096)"
    )
    _pool(run, "processes that judge at once, each with its own adapter (one per core, up to 4)")
    _format(run)


def _replay_arguments(replay: argparse.ArgumentParser) -> None:
    replay.usage = "kvconform replay [options] TRACE [-- COMMAND ...]"
    replay.add_argument("trace", help="a trace file, or - for standard input")
    replay.add_argument(
        "--adapter", help="judge this adapter on the trace; without it, show what the reference does"
    )
    replay.add_argument("--draw", action="store_true", help="draw slots and queries at each step")
    replay.add_argument("--svg", metavar="FILE", help="write the drawing of --draw to this file as SVG")
    replay.add_argument("--level", choices=("visible",), help="judge at this level, though more is claimed")
    replay.add_argument("--deadline", type=_seconds, default=20.0, help="seconds for one operation (20)")


def _smoke_arguments(smoke: argparse.ArgumentParser) -> None:
    smoke.usage = "kvconform smoke (ADAPTER | -- COMMAND ...)"
    smoke.add_argument("adapter", nargs="?", help="a name (see `kvconform list`) or module:Class")


def _prove_arguments(prove: argparse.ArgumentParser) -> None:
    prove.usage = "kvconform prove [options] (ADAPTER | -- COMMAND ...)"
    prove.add_argument("adapter", nargs="?", help="a name (see `kvconform list`) or module:Class")
    prove.add_argument(
        "--chapter", action="append", default=[], help="chapter to explore (repeatable; ring), or all"
    )
    prove.add_argument("--window", type=_count, help="largest window (8 for the reference, 4 for other adapters)")
    prove.add_argument(
        "--k",
        type=_count,
        help="extra states the adapter may have beyond the reference's (0; 1 for rings of other adapters)",
    )
    prove.add_argument("--deadline", type=_seconds, default=20.0, help="seconds for one operation (20)")
    _pool(prove, "configurations proved at once (one per core)")
    _format(prove)


def _mutants_arguments(mutants: argparse.ArgumentParser) -> None:
    mutants.add_argument(
        "--kind", action="append", default=[], choices=MUTANTS, help="only this kind of mutant (repeatable; all)"
    )
    mutants.add_argument("--match", metavar="PATTERN", help="only mutants whose id matches this regular expression")
    mutants.add_argument(
        "--every", type=_above_zero, default=1, metavar="N", help="try one in N systematic faults (1)"
    )
    mutants.add_argument(
        "--argued", action="store_true", help="also try the mutants that are argued to be equivalent"
    )
    mutants.add_argument("--list", action="store_true", help="list the mutants and what each does, and stop")
    _pool(mutants, "mutants tried at once (one per core)")
    mutants.add_argument(
        "--report", metavar="DIR", help="write mutants.json, mutants.html and mutants.md into this folder"
    )
    _format(mutants)


def _soak_arguments(soak: argparse.ArgumentParser) -> None:
    soak.add_argument(
        "adapters", nargs="+", metavar="ADAPTER", help="a name, module:Class, or a correct variant such as Linked"
    )
    soak.add_argument(
        "--operations", type=_above_zero, default=1_000_000, help="operations to judge on each (1000000)"
    )
    soak.add_argument("--seed", type=_count, default=0, help="seed of the first batch (0)")
    soak.add_argument(
        "--out", default="kvconform-soak", metavar="DIR", help="folder for failing traces (kvconform-soak)"
    )
    _pool(soak, "batches judged at once (one per core)")


def _vectors_arguments(vectors: argparse.ArgumentParser) -> None:
    actions = vectors.add_subparsers(dest="action", required=True, metavar="ACTION")
    export = actions.add_parser("export", help="write a folder of vectors that can be used without this project")
    export.add_argument("--out", required=True, metavar="DIR", help="where to write it")
    verify = actions.add_parser("verify", help="check that the reference still gives exactly these vectors")
    verify.add_argument("folder", nargs="?", metavar="DIR", help="an exported folder (the frozen vectors)")
    for action in (export, verify):
        action.add_argument("--chapter", action="append", default=[], help="only this chapter (repeatable)")
        action.add_argument(
            "--source", action="append", default=[], choices=VECTORS, help="only this source (repeatable)"
        )


def _strict_arguments(strict: argparse.ArgumentParser) -> None:
    strict.add_argument(
        "adapters", nargs="*", metavar="ADAPTER", help="compare these with numpy (all built-in adapters)"
    )


def _profile_arguments(profile: argparse.ArgumentParser) -> None:
    profile.add_argument("adapter", help="a name (see `kvconform list`) or module:Class")
    profile.add_argument(
        "--peers", metavar="NAMES", help="only these peers, separated by commas (all that are installed)"
    )
    profile.add_argument("--cases", metavar="PATTERN", help="only cases whose id matches this regular expression")
    profile.add_argument(
        "--quick", action="store_true", help="only a few small cases, to see that everything works"
    )
    profile.add_argument("--rounds", type=_above_zero, default=9, help="rounds of each case (9)")
    profile.add_argument("--memory", type=_above_zero, default=256, help="MiB of rows to rotate through (256)")
    profile.add_argument("--minutes", type=_above_zero, default=8, help="time limit for all cases together (8)")
    profile.add_argument(
        "--report", metavar="DIR", help="write profile.json, profile.html and profile.md into this folder"
    )
    _format(profile)


def _list_arguments(listing: argparse.ArgumentParser) -> None:
    listing.add_argument("what", nargs="?", choices=("adapters", "chapters", "clauses"))
    _format(listing)


def _explain_arguments(explain: argparse.ArgumentParser) -> None:
    explain.add_argument("clause", help="an id such as RING-4, or a chapter such as RING")


def _report_arguments(report: argparse.ArgumentParser) -> None:
    report.add_argument(
        "records", nargs="+", metavar="RECORD", help="record.json, or the journal of a run cut short"
    )
    report.add_argument("--html", metavar="FILE", help="write the page to this file")
    _format(report)


def _new_adapter_arguments(new: argparse.ArgumentParser) -> None:
    new.add_argument("name", help="the adapter's name: small letters, digits and hyphens")
    new.add_argument("--into", default=".", metavar="DIR", help="folder to write it into (.)")


COMMANDS: tuple[tuple[str, str, Callable[[argparse.ArgumentParser], None]], ...] = (
    ("run", "judge an adapter", _run_arguments),
    ("profile", "measure an adapter's speed beside its peers and the limits of its device", _profile_arguments),
    ("smoke", "try a new adapter in a few steps: does it start, answer and keep its rows?", _smoke_arguments),
    ("list", "list adapters, chapters or clauses", _list_arguments),
    ("explain", "explain a clause: its rule, the reason, and worked examples", _explain_arguments),
    ("replay", "replay a trace step by step, on the reference or on an adapter", _replay_arguments),
    ("prove", "try every move from every state of small configurations", _prove_arguments),
    ("mutants", "test the suite itself: plant known bugs and show which test finds each", _mutants_arguments),
    ("soak", "test the suite itself: judge correct adapters on random operations; all must pass", _soak_arguments),
    ("vectors", "export or verify frozen traces for an engine's own tests", _vectors_arguments),
    ("strict", "hash the outputs of strict attention, for numpy and each adapter", _strict_arguments),
    ("report", "render the records of runs, several side by side", _report_arguments),
    ("new-adapter", "write the skeleton of an adapter package", _new_adapter_arguments),
)
"""Each command: its name, its one-line help, and the function that adds its arguments."""


def _pool(command: argparse.ArgumentParser, help: str) -> None:
    where = command.add_mutually_exclusive_group()
    where.add_argument("--processes", type=_above_zero, metavar="N", help=help)
    where.add_argument(
        "--on", metavar="ADDRESS", help="run on the dask cluster of this scheduler, such as tcp://host:8786"
    )


def _format(command: argparse.ArgumentParser) -> None:
    command.add_argument("--format", choices=FORMATS, default="table", help="output format (table)")


def _count(text: str) -> int:
    if not text.isdigit() or int(text) > 1 << 40:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 0 or more")
    return int(text)


def _above_zero(text: str) -> int:
    if (count := _count(text)) == 0:
        raise argparse.ArgumentTypeError("it must be 1 or more")
    return count


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
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
    command = importlib.import_module(f"kvconform.commands.{options.command.replace('-', '_')}")
    from concurrent.futures import BrokenExecutor

    from kvspec.errors import BadInput, CannotRun

    try:
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
    except KeyboardInterrupt:
        sys.stderr.write("kvconform: interrupted\n")
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader of standard output is gone
        return 0


if __name__ == "__main__":
    sys.exit(main())
