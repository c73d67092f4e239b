"""`kvconform prove ADAPTER`: tries every move from every state of small configurations; prints the claim."""

from __future__ import annotations

import json
from argparse import Namespace
from concurrent.futures import BrokenExecutor

from tabulate import tabulate

from kvconform.generate.registry import planned
from kvconform.judge import trial
from kvconform.message import tell
from kvconform.runner.pool import opened
from kvconform.runner.settings import require_known
from kvconform.worker.tasks import ProcessDied
from kvspec.chapters import CHAPTERS
from kvspec.contract import Description
from kvspec.errors import BadInput
from kvspec.registry import RECORDS
from kvworkshop.prove import claims
from kvworkshop.prove.claims import Judge
from kvworkshop.prove.configurations import Candidate, Configuration, in_order, plans
from kvworkshop.prove.proof import Proof

OF_THE_REFERENCE = 8
"""Largest window proved for the reference by default."""
OF_AN_ADAPTER = 4

ALL = "all"
"""Word for every chapter that has states to explore."""


def main(options: Namespace) -> int:
    """Print the proofs and their claim. Return 1 for a counterexample. What was proved is printed even if a
    process is lost (3) or the command is interrupted (130)."""
    candidate = Candidate(options.adapter or options.process[0], tuple(options.process), options.deadline)
    chosen = _chosen(options, OF_THE_REFERENCE if candidate.is_reference else OF_AN_ADAPTER)
    adapter = _declaring(candidate, options)
    proofs, ended = _proved(candidate, chosen, options)
    if ended and not proofs:
        return ended
    status = _told(proofs, _judge(adapter, proofs), options.format)
    return ended or status


def _declaring(candidate: Candidate, options: Namespace) -> Description | None:
    """Describe the candidate, or None for the reference. Raises BadInput for a chapter that it does not claim."""
    if candidate.is_reference:
        return None
    with candidate.worker() as worker:
        adapter = worker.describe()
    missing = set(chapters(options)) - set(adapter.chapters)
    if missing:
        others = [c for c in planned() if c in adapter.chapters]
        hint = f"; name one that it claims: --chapter {others[0]}" if others else ""
        raise BadInput(f"{adapter.name} does not claim {', '.join(sorted(missing))}{hint}")
    return adapter


def _judge(adapter: Description | None, proofs: list[Proof]) -> Judge:
    """Name the oracle that judged the candidate, and the level."""
    if adapter is None:
        return Judge("reference", "list model", "visible")
    levels = {trial.level_of(p.plan.start, adapter) for p in proofs}
    oracle, level = ("reference", "storage") if levels == {"storage"} else ("list model", "visible")
    return Judge(adapter.name, oracle, level)


def _proved(candidate: Candidate, chosen: list[Configuration], options: Namespace) -> tuple[list[Proof], int]:
    """Prove the configurations. Give the proofs, and the status of a command that ended before the last, else 0."""
    proofs = list[Proof]()
    try:
        with opened(options.processes, options.on) as pool:
            proofs.extend(in_order(pool, candidate, chosen))
    except (BrokenExecutor, ProcessDied) as e:
        tell(f"{e}; {len(proofs)} of {len(chosen)} configurations were proved")
        return proofs, 3
    except KeyboardInterrupt:
        tell(f"interrupted; {len(proofs)} of {len(chosen)} configurations were proved")
        return proofs, 130
    return proofs, 0


def chapters(options: Namespace) -> list[str]:
    """Name the chapters asked for, or else those that are proved by default."""
    for chapter in set(options.chapter) - {ALL}:
        require_known("chapter", chapter, CHAPTERS)
    if ALL in options.chapter:
        return list(planned())
    return options.chapter or [name for name, record in RECORDS.items() if record.extra_states is not None]


def _chosen(options: Namespace, windows: int) -> list[Configuration]:
    """Give the configurations asked for."""
    largest = windows if options.window is None else options.window
    return [
        Configuration(chapter, largest, plan.name, _extra(options, chapter, windows))
        for chapter in chapters(options)
        for plan in plans(chapter, largest)
    ]


def _extra(options: Namespace, chapter: str, windows: int) -> int:
    """Give how many extra states the adapter may have: none for the reference, and for others by default what the
    chapter says."""
    if options.k is not None:
        return int(options.k)
    return RECORDS[chapter].extra_states or 0 if windows == OF_AN_ADAPTER else 0


HEAD = (
    *("configuration", "states", "transitions", "k", "identifiers", "traces", "operations", "seconds", "result"),
)


def _told(proofs: list[Proof], judge: Judge, how: str) -> int:
    """Print the result. Return 1 if there is a counterexample."""
    document = claims.document(proofs, judge)
    if how == "json":
        print(json.dumps(document, indent=1))
    else:
        rows = [[p[name] for name in HEAD] for p in document["proofs"]]
        print(tabulate(rows, HEAD, tablefmt="github" if how == "markdown" else "simple"))
        print("\n" + claims.printed(document))
    return int(document["counterexample"] is not None)
