"""`kvconform prove ADAPTER`: tries every move from every state of small configurations; prints the claim."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from kvconform.commands.arguments import add_adapter, add_deadline, add_format, add_pool, count

if TYPE_CHECKING:
    from kvconform.prove.claims import Judge
    from kvconform.prove.configurations import Candidate, Configuration
    from kvconform.prove.proof import Proof
    from kvspec.contract import Description

HELP = "try every move from every state of small configurations"

OF_THE_REFERENCE = 8
"""Largest window proved for the reference by default."""
OF_AN_ADAPTER = 4

ALL = "all"
"""Word for every chapter that has states to explore."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_adapter(parser)
    parser.add_argument(
        "--chapter", action="append", default=[], help="chapter to explore (repeatable; ring), or all"
    )
    parser.add_argument("--window", type=count, help="largest window (8 for the reference, 4 for other adapters)")
    parser.add_argument(
        "--k",
        type=count,
        help="extra states the adapter may have beyond the reference's (0; 1 for rings of other adapters)",
    )
    add_deadline(parser)
    add_pool(parser, "configurations proved at once (one per core)")
    add_format(parser)


def main(options: Namespace) -> int:
    """Print the proofs and their claim; return 1 for a counterexample, 3 if a process was lost."""
    from kvconform.prove.configurations import Candidate

    candidate = Candidate(options.adapter or options.process[0], tuple(options.process), options.deadline)
    chosen = _chosen(options, OF_THE_REFERENCE if candidate.is_reference else OF_AN_ADAPTER)
    adapter = _declaring(candidate, options)
    proofs, lost = _proved(candidate, chosen, options)
    status = _told(proofs, _judge(adapter, proofs), options.format)
    return 3 if lost else status


def _declaring(candidate: Candidate, options: Namespace) -> Description | None:
    """Describe the candidate; None for the reference. Raises BadInput for a chapter that it does not declare."""
    from kvspec.errors import BadInput

    if candidate.is_reference:
        return None
    with candidate.worker() as worker:
        adapter = worker.describe()
    missing = set(chapters(options)) - set(adapter.chapters)
    if missing:
        raise BadInput(f"{adapter.name} does not declare {', '.join(sorted(missing))}")
    return adapter


def _judge(adapter: Description | None, proofs: list[Proof]) -> Judge:
    """Name the oracle that judged the candidate, and the level."""
    from kvconform.judge import trial
    from kvconform.prove.claims import Judge

    if adapter is None:
        return Judge("reference", "list model", "visible")
    levels = {trial.level_of(p.plan.start, adapter) for p in proofs}
    oracle, level = ("reference", "storage") if levels == {"storage"} else ("list model", "visible")
    return Judge(adapter.name, oracle, level)


def _proved(candidate: Candidate, chosen: list[Configuration], options: Namespace) -> tuple[list[Proof], bool]:
    """Prove the configurations; give the proofs, and whether a process or the pool was lost before the last."""
    from concurrent.futures import BrokenExecutor

    from pebble import ProcessExpired

    from kvconform.prove.configurations import in_order
    from kvconform.prove.proof import Proof
    from kvconform.runner.pool import opened

    proofs = list[Proof]()
    try:
        with opened(options.processes, options.on) as pool:
            proofs.extend(in_order(pool, candidate, chosen))
    except (BrokenExecutor, ProcessExpired) as e:
        sys.stderr.write(f"kvconform: {e}; {len(proofs)} of {len(chosen)} configurations were proved\n")
        return proofs, True
    return proofs, False


def chapters(options: Namespace) -> list[str]:
    """Name the chapters asked for, or else those that are proved by default."""
    from kvconform.generate.covers import planned
    from kvspec.registry import RECORDS

    if ALL in options.chapter:
        return list(planned())
    return options.chapter or [name for name, record in RECORDS.items() if record.extra_states is not None]


def _chosen(options: Namespace, windows: int) -> list[Configuration]:
    """Give the configurations asked for."""
    from kvconform.prove.configurations import Configuration, plans

    largest = windows if options.window is None else options.window
    return [
        Configuration(chapter, largest, plan.name, _extra(options, chapter, windows))
        for chapter in chapters(options)
        for plan in plans(chapter, largest)
    ]


def _extra(options: Namespace, chapter: str, windows: int) -> int:
    """Give how many extra states the adapter may have: by default what the chapter says; the reference none."""
    from kvspec.registry import RECORDS

    if options.k is not None:
        return int(options.k)
    return RECORDS[chapter].extra_states or 0 if windows == OF_AN_ADAPTER else 0


HEAD = (
    *("configuration", "states", "transitions", "k", "identifiers", "traces", "operations", "seconds", "result"),
)


def _told(proofs: list[Proof], judge: Judge, how: str) -> int:
    """Print the result; return 1 if there is a counterexample."""
    import json

    from tabulate import tabulate

    from kvconform.prove import claims

    document = claims.document(proofs, judge)
    if how == "json":
        print(json.dumps(document, indent=1))
    else:
        rows = [[p[name] for name in HEAD] for p in document["proofs"]]
        print(tabulate(rows, HEAD, tablefmt="github" if how == "markdown" else "simple"))
        print("\n" + claims.printed(document))
    return int(document["counterexample"] is not None)
