"""The commands of `kvconform` and their options. The modules of the commands import much; this one imports little,
so that `--help` is quick."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from kvconform.commands.arguments import (
    above_zero,
    add_adapter,
    add_chapter,
    add_deadline,
    add_format,
    add_known,
    add_level,
    add_pool,
    add_report,
    add_unclaimed,
    count,
)
from kvconform.vectors import SOURCES

KINDS = ("controls", "fakes", "catalogue", "anomalies", "reference", "gpu", "kernels")
"""The kinds of mutants; `kvworkshop.kinds` makes them."""


class Command(NamedTuple):
    """One command: its line in the help of all, what adds its arguments, and the package whose `commands` has it.
    What a run needs never imports the workshop or the instruments: they are found by name."""

    help: str
    add_arguments: Callable[[ArgumentParser], None]
    room: str = "kvconform"


def _run(parser: ArgumentParser) -> None:
    add_adapter(parser)
    add_chapter(parser, "only this chapter (repeatable)")
    parser.add_argument(
        "--clause",
        action="append",
        default=[],
        help="only this clause (repeatable): its examples and laws, its chapter's exploration, and 500 traces of "
        "the covers, or all of them if those do not exercise it",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="worked examples, and a small share of the covers and random traces: seconds instead of minutes",
    )
    parser.add_argument(
        "--traces", type=count, help="random traces for each exploration (24; with --clause 20, with --quick 2)"
    )
    parser.add_argument("--seed", type=count, default=0, help="seed of the random traces (0)")
    add_known(parser)
    add_level(parser)
    add_report(parser, "record.json, report.html, report.md and more")
    add_deadline(parser)
    parser.add_argument(
        "--memory", type=count, default=4096, help="MiB of resident memory the adapter may use (4096)"
    )
    add_pool(parser, "processes that judge at once, each with its own adapter (one per core, up to 4)")
    _add_ending(parser)
    _add_whole_engine(parser)
    add_unclaimed(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="print the result in one line, and no progress")
    add_format(parser)


def _add_whole_engine(parser: ArgumentParser) -> None:
    """Add what judges a whole engine by requests."""
    whole = parser.add_argument_group("a whole serving engine, by requests", "see docs/serving.md")
    whole.add_argument("--server", metavar="ADDRESS", help="a server, such as http://127.0.0.1:8000/v1")
    whole.add_argument(
        "--engine",
        metavar="NAME",
        help="an engine that is started in this process: its name, or module:function for your own",
    )
    whole.add_argument("--model", metavar="DIR", help="the folder of the probe that it has loaded")
    whole.add_argument("--requests", type=above_zero, default=500, metavar="N", help="requests to ask (500)")
    whole.add_argument(
        "--declare",
        default="",
        metavar="WORDS",
        help="what a server does not say, or what --engine starts with: block=16,blocks=64,chunk=64,drafts=3,salt",
    )
    whole.add_argument("--dtype", default="f32", help="what it computes in: f32, bf16 or f16 (f32)")
    whole.add_argument("--rows", help="the form of its rows, if it is another, such as q8_0 (that of --dtype)")


def _add_ending(parser: ArgumentParser) -> None:
    """Add the options that end a run early, and that continue with what failed."""
    ending = parser.add_mutually_exclusive_group()
    ending.add_argument(
        "-x",
        "--exitfirst",
        action="store_const",
        dest="maxfail",
        const=1,
        help="stop at the first failure",
    )
    ending.add_argument("--maxfail", type=count, default=0, metavar="N", help="stop when N checks have failed")
    parser.add_argument(
        "--last-failed",
        action="store_true",
        help="judge only what failed in the run before, whose report is in DIR",
    )


def _check(parser: ArgumentParser) -> None:
    parser.add_argument("log", metavar="LOG", help="a log in lines of JSON; see spec/WIRE.md")
    add_known(parser)
    add_level(parser)
    add_report(parser, "record.json, report.html, report.md and more")
    add_format(parser)


def _profile(parser: ArgumentParser) -> None:
    parser.add_argument("adapter", help="a name (see `kvconform list`) or module:Class")
    parser.add_argument(
        "--peers",
        metavar="NAMES",
        help="only these peers, separated by commas (all installed that suit the device)",
    )
    parser.add_argument("--cases", metavar="PATTERN", help="only cases whose id matches this regular expression")
    few = parser.add_mutually_exclusive_group()
    few.add_argument("--quick", action="store_true", help="only a few small cases, to see that everything works")
    few.add_argument(
        "--models", action="store_true", help="measure the attention of current models instead, in bf16"
    )
    parser.add_argument("--rounds", type=above_zero, default=9, help="rounds of each case (9)")
    parser.add_argument(
        "--memory",
        type=above_zero,
        help="MiB of rows that each party rotates through (256, or 8 times the last-level cache); all parties "
        "together take at most a quarter of the free memory",
    )
    parser.add_argument("--minutes", type=above_zero, default=8, help="time limit for all cases together (8)")
    add_report(parser, "profile.json, profile.html and profile.md")
    add_format(parser)


def _list(parser: ArgumentParser) -> None:
    parser.add_argument("what", nargs="?", choices=("adapters", "chapters", "clauses"))
    add_format(parser)


def _explain(parser: ArgumentParser) -> None:
    parser.add_argument("clause", help="an id such as RING-4, or a chapter such as RING")


def _replay(parser: ArgumentParser) -> None:
    parser.usage = "kvconform replay [options] TRACE [-- COMMAND ...]"
    parser.add_argument(
        "trace", help="a trace in words, such as 'ring window=4: append 5; view'; a file; or - for standard input"
    )
    parser.add_argument(
        "--adapter", help="judge this adapter on the trace; without it, show what the reference does"
    )
    parser.add_argument(
        "--after", metavar="TRACE", help="run this trace first in the adapter's process, without judging it"
    )
    parser.add_argument("--draw", action="store_true", help="draw slots and queries at each step")
    parser.add_argument("--svg", metavar="FILE", help="write the drawing of --draw to this file as SVG")
    add_level(parser)
    add_deadline(parser)
    add_known(parser)


def _prove(parser: ArgumentParser) -> None:
    add_adapter(parser)
    add_chapter(parser, "chapter to explore (repeatable; ring), or all")
    parser.add_argument(
        "--window", type=above_zero, help="largest window (8 for the reference, 4 for other adapters)"
    )
    parser.add_argument(
        "--k",
        type=count,
        help="extra states the adapter may have beyond the reference's (0; 1 for rings of other adapters)",
    )
    add_deadline(parser)
    add_pool(parser, "configurations proved at once (one per core)")
    add_format(parser)


def _mutants(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--kind", action="append", default=[], choices=KINDS, help="only this kind of mutant (repeatable; all)"
    )
    parser.add_argument("--match", metavar="PATTERN", help="only mutants whose id matches this regular expression")
    parser.add_argument(
        "--every",
        type=above_zero,
        default=1,
        metavar="N",
        help="try one in N systematic faults and correct controls (1)",
    )
    parser.add_argument(
        "--first",
        action="store_true",
        help="stop at the first source that finds a mutant, and leave its trace as it is",
    )
    parser.add_argument(
        "--argued", action="store_true", help="also try the mutants that are argued to be equivalent"
    )
    parser.add_argument("--list", action="store_true", help="list the mutants and what each does, and stop")
    parser.add_argument(
        "--resume",
        action="store_true",
        help="continue an interrupted command, whose report is in the folder of --report",
    )
    add_pool(parser, "mutants tried at once (one per core)")
    add_report(parser, "mutants.json, mutants.html and mutants.md")
    add_format(parser)


def _soak(parser: ArgumentParser) -> None:
    parser.add_argument(
        "adapters", nargs="+", metavar="ADAPTER", help="a name, module:Class, or a correct variant such as Linked"
    )
    parser.add_argument(
        "--operations", type=above_zero, default=1_000_000, help="operations to judge on each (1000000)"
    )
    parser.add_argument("--seed", type=count, default=0, help="seed of the first batch (0)")
    parser.add_argument(
        "--out", default="kvconform-soak", metavar="DIR", help="folder for failing traces (kvconform-soak)"
    )
    add_pool(parser, "batches judged at once (one per core)")


def _vectors(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    export = actions.add_parser("export", help="write a folder of vectors that can be used without this project")
    export.add_argument("--out", required=True, metavar="DIR", help="where to write it")
    export.add_argument(
        "--verify", action="store_true", help="compare what is frozen with the reference first (takes a minute)"
    )
    verify = actions.add_parser("verify", help="check that the reference still gives exactly these vectors")
    verify.add_argument("folder", nargs="?", metavar="DIR", help="an exported folder (the frozen vectors)")
    for action in (export, verify):
        action.add_argument("--chapter", action="append", default=[], help="only this chapter (repeatable)")
        action.add_argument(
            "--source", action="append", default=[], choices=SOURCES, help="only this source (repeatable)"
        )


def _strict(parser: ArgumentParser) -> None:
    parser.add_argument(
        "adapters", nargs="*", metavar="ADAPTER", help="compare these with numpy (all built-in adapters)"
    )


def _report(parser: ArgumentParser) -> None:
    parser.add_argument(
        "records",
        nargs="+",
        metavar="RECORD",
        help="record.json, the journal of a run or of a profile, or two profile.json, the older first",
    )
    parser.add_argument("--html", metavar="FILE", help="write the page to this file")
    _add_spec(parser, "the Markdown of runs and mutants")
    add_unclaimed(parser)
    add_format(parser)


def _add_spec(parser: ArgumentParser, where: str) -> None:
    parser.add_argument(
        "--spec", default="", metavar="ADDRESS", help=f"the folder of the chapters: ids in {where} are links to it"
    )


def _board(parser: ArgumentParser) -> None:
    parser.add_argument("records", nargs="+", metavar="RECORD", help="record.json of an engine's cache")
    add_known(parser)
    parser.add_argument(
        "--out", required=True, metavar="DIR", help="write README.md and board.html into this folder"
    )
    _add_spec(parser, "README.md")
    parser.add_argument("--badges", metavar="DIR", help="write a badge of each record, NAME.svg, into this folder")


def _site(parser: ArgumentParser) -> None:
    parser.add_argument("records", nargs="*", metavar="RECORD", help="record.json to show beside each clause")
    add_known(parser)
    parser.add_argument(
        "--repository", type=Path, metavar="DIR", help="a checkout of kvconform: adds its guides, bugs and history"
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="write the site into this folder")


def _new_adapter(parser: ArgumentParser) -> None:
    parser.add_argument("name", help="the adapter's name: small letters, digits and hyphens")
    parser.add_argument("--into", default=".", metavar="DIR", help="folder to write it into (.)")


def _probe(parser: ArgumentParser) -> None:
    parser.add_argument(
        "architecture", help="llama, mistral, qwen3, phi3, gemma3, gpt-oss, deepseek or llama4; see docs/probe.md"
    )
    parser.add_argument(
        "--layers", default="full,full", help="the view of each layer: full, window N or chunk N (full,full)"
    )
    parser.add_argument("--dtype", default="f32", help="what the weights are written in: f32, bf16 or f16 (f32)")
    parser.add_argument(
        "--output",
        default="weights",
        help="what is read: weights, off logits or logprobs; or tokens alone (weights)",
    )
    parser.add_argument(
        "--format", default="safetensors", help="the format of the checkpoint: safetensors or gguf (safetensors)"
    )
    parser.add_argument("-o", "--out", required=True, metavar="DIR", help="write it into this folder")
    parser.add_argument("--json", action="store_true", help="print the record as JSON")


def _ask(parser: ArgumentParser) -> None:
    parser.add_argument(
        "engine", help="transformers, transformers-static, mlx-lm, or module:function; see docs/probe.md"
    )
    parser.add_argument("folder", metavar="DIR", help="a folder that `kvconform probe` wrote")
    parser.add_argument("--dtype", default="f32", help="what the engine computes in: f32, bf16 or f16 (f32)")
    parser.add_argument("--rows", help="the form of its rows, if it is another, such as q8_0 (that of --dtype)")
    parser.add_argument("--seed", type=count, default=0, help="draws the tokens (0)")


def _demo(parser: ArgumentParser) -> None:
    add_report(parser, "the report of the run (a new temporary folder)")
    parser.add_argument("--no-open", action="store_true", help="do not open the page in a browser")


COMMANDS = {
    "demo": Command("see a failure: judge a small ring that has a bug, in seconds", _demo),
    "run": Command("judge an adapter", _run),
    "check": Command("judge an engine by its log, without an adapter", _check),
    "profile": Command(
        "measure an adapter's speed beside its peers and the limits of its device", _profile, "kvprofile"
    ),
    "smoke": Command("try a new adapter in a few steps, then each ability once; propose a claim", add_adapter),
    "list": Command("list adapters, chapters or clauses", _list),
    "explain": Command("explain a clause: its rule, the reason, and worked examples", _explain),
    "replay": Command("replay a trace step by step, on the reference or on an adapter", _replay),
    "prove": Command("try every move from every state of small configurations", _prove, "kvworkshop"),
    "mutants": Command(
        "test the suite itself: plant known bugs and show which test finds each", _mutants, "kvworkshop"
    ),
    "soak": Command(
        "test the suite itself: judge correct adapters on random operations; all must pass", _soak, "kvworkshop"
    ),
    "vectors": Command("export or verify frozen traces for an engine's own tests", _vectors),
    "strict": Command("hash the outputs of strict attention, for numpy and each adapter", _strict),
    "report": Command("render the records of runs, several side by side", _report),
    "board": Command("put the records of released engines together on one board", _board),
    "site": Command("write the spec as a site, a page for each clause, with the verdicts of records", _site),
    "probe": Command("write a checkpoint whose logits say which rows each query saw", _probe),
    "ask": Command("ask a whole engine that loads such a checkpoint what its queries see", _ask),
    "new-adapter": Command("write the skeleton of an adapter package", _new_adapter),
}
"""Every command, in the order of the help; the module of each is in `commands` of its room."""
