"""The options of the commands that judge a cache or a whole engine."""

from __future__ import annotations

from argparse import ArgumentParser, BooleanOptionalAction

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
    minutes,
)


def smoke(parser: ArgumentParser) -> None:
    """Add the options of `kvconform smoke`."""
    add_adapter(parser)


def run(parser: ArgumentParser) -> None:
    """Add the options of `kvconform run`."""
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
        action=BooleanOptionalAction,
        help="worked examples, and a small share of the covers and random traces: seconds instead of minutes",
    )
    parser.add_argument(
        "--watch",
        action="store_true",
        help="judge again, quickly, whenever a source file of the adapter changes; --no-quick judges everything; "
        "Ctrl-C ends",
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
        "--memory", type=above_zero, default=4096, help="MiB of resident memory the adapter may use (4096)"
    )
    parser.add_argument(
        "--minutes",
        type=minutes,
        help="stop after this time, and judge first what shows most; what was judged is kept, and marked partial",
    )
    add_pool(parser, "processes that judge at once, each with its own adapter (one per core, up to 4)")
    _add_ending(parser)
    _add_whole_engine(parser)
    add_unclaimed(parser)
    parser.add_argument(
        "--require-spec", metavar="N", help="refuse to run with another version of the spec: 1 takes each 1.x"
    )
    parser.add_argument(
        "--annotations",
        action="store_true",
        help="also write what broke as annotations of GitHub; they are written where GITHUB_ACTIONS is true, too",
    )
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


def check(parser: ArgumentParser) -> None:
    """Add the options of `kvconform check`."""
    parser.add_argument(
        "log", metavar="LOG", help="a log in lines of JSON; see spec/WIRE.md, or `kvconform explain STEP`"
    )
    add_known(parser)
    add_level(parser)
    add_report(parser, "record.json, report.html, report.md and more")
    add_format(parser)


def replay(parser: ArgumentParser) -> None:
    """Add the options of `kvconform replay`."""
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


def probe(parser: ArgumentParser) -> None:
    """Add the options of `kvconform probe`."""
    parser.add_argument(
        "architecture",
        help="llama, mistral, qwen3, phi3, gemma3, gpt-oss, deepseek, llama4 or qwen3-next; see docs/probe.md",
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
        "--format", default="safetensors", help="the format of the checkpoint: safetensors, gguf, onnx or mlx"
    )
    parser.add_argument("--adapters", action="store_true", help="write two adapters (LoRA), x and y, beside it")
    parser.add_argument(
        "--match", action="store_true", help="with heads that match the key of each row with the token of its value"
    )
    parser.add_argument("-o", "--out", required=True, metavar="DIR", help="write it into this folder")
    parser.add_argument("--json", action="store_true", help="print the record as JSON")


def ask(parser: ArgumentParser) -> None:
    """Add the options of `kvconform ask`."""
    parser.add_argument(
        "engine",
        help="transformers, transformers-static, mlx-lm, onnxruntime, or module:function; see docs/probe.md",
    )
    parser.add_argument("folder", metavar="DIR", help="a folder that `kvconform probe` wrote")
    parser.add_argument("--dtype", default="f32", help="what the engine computes in: f32, bf16 or f16 (f32)")
    parser.add_argument("--rows", help="the form of its rows, if it is another, such as q8_0 (that of --dtype)")
    parser.add_argument("--seed", type=count, default=0, help="draws the tokens (0)")
    parser.add_argument("--report", metavar="DIR", help="write the record, asked.json, into this folder")


def demo(parser: ArgumentParser) -> None:
    """Add the options of `kvconform demo`."""
    add_report(parser, "the report of the run (a new temporary folder)")
    parser.add_argument("--no-open", action="store_true", help="do not open the page in a browser")


def new_adapter(parser: ArgumentParser) -> None:
    """Add the options of `kvconform new-adapter`."""
    parser.add_argument("name", help="the adapter's name: small letters, digits and hyphens")
    parser.add_argument("--into", default=".", metavar="DIR", help="folder to write it into (.)")
