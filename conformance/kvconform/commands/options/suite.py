"""The options of the commands that measure, and that test the suite itself."""

from __future__ import annotations

from argparse import ArgumentParser

from kvconform.commands.arguments import (
    above_zero,
    add_adapter,
    add_chapter,
    add_deadline,
    add_format,
    add_pool,
    add_report,
    count,
    extra_states,
    window,
)

KINDS = ("controls", "fakes", "catalogue", "anomalies", "reference", "gpu", "kernels")
"""The kinds of mutants; `kvworkshop.all_mutants` makes them."""


def profile(parser: ArgumentParser) -> None:
    """Add the options of `kvconform profile`."""
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


def prove(parser: ArgumentParser) -> None:
    """Add the options of `kvconform prove`."""
    add_adapter(parser)
    add_chapter(parser, "chapter to explore (repeatable; ring), or all")
    parser.add_argument("--window", type=window, help="largest window (8 for the reference, 4 for other adapters)")
    parser.add_argument(
        "--k",
        type=extra_states,
        help="extra states the adapter may have beyond the reference's (0; 1 for rings of other adapters)",
    )
    add_deadline(parser)
    add_pool(parser, "configurations proved at once (one per core)")
    add_format(parser)


def mutants(parser: ArgumentParser) -> None:
    """Add the options of `kvconform mutants`."""
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
        "--again",
        metavar="MATRIX",
        help="try each systematic fault first on the trace that shows it in this mutants.json; hunt it only where "
        "that does not show it again",
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


def soak(parser: ArgumentParser) -> None:
    """Add the options of `kvconform soak`."""
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


def strict(parser: ArgumentParser) -> None:
    """Add the options of `kvconform strict`."""
    parser.add_argument(
        "adapters", nargs="*", metavar="ADAPTER", help="compare these with numpy (all built-in adapters)"
    )


def new_chapter(parser: ArgumentParser) -> None:
    """Add the options of `kvconform new-chapter`."""
    parser.add_argument("name", help="the chapter's name, and that of its kind of cache: small letters")
    parser.add_argument("--letters", metavar="ID", help="what the ids of its clauses begin with (NAME)")
    parser.add_argument("--into", metavar="DIR", help="the checkout to write it into (the one that is installed)")
