"""`kvconform prove ADAPTER`: every state of small configurations, every move from each; what follows, exactly."""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from tabulate import tabulate

from kvadapters.reference import Reference
from kvconform import vectors
from kvconform.generate.covers import Plan
from kvconform.judge import trial
from kvconform.judge.trial import TrialResult
from kvconform.oracle.reference import CitingReference
from kvconform.prove import claims
from kvconform.prove import proof as prove
from kvconform.prove.claims import Judge
from kvconform.prove.proof import Proof, Runs
from kvconform.worker.client import Worker, python_worker
from kvconform.worker.remote_session import RemoteSession
from kvspec.contract import Description, description
from kvspec.errors import BadInput
from kvspec.trace import Trace

OF_THE_REFERENCE = 8
"""Windows that are proved of the reference unless the caller says otherwise."""
OF_AN_ADAPTER = 4

ALL = "all"
"""Every chapter that has states to explore."""


def main(options: Namespace) -> int:
    """Prove, print what was done and what follows; 1 if there is a counterexample."""
    if options.adapter == "reference" and not options.process:
        judge = Judge("reference", "list model", "visible")
        return _told(list(_of_the_reference(options)), judge, options.format)
    with Worker(list(options.process) or python_worker(options.adapter), deadline=options.deadline) as worker:
        adapter = worker.describe()
        missing = set(chapters(options)) - set(adapter.chapters)
        if missing:
            raise BadInput(f"{adapter.name} does not declare {', '.join(sorted(missing))}")
        proofs = list(_all(options, OF_AN_ADAPTER, _runs(worker, adapter)))
        level = min((trial.level_of(p.plan.start, adapter) for p in proofs), key=("visible", "storage").index)
        oracle = "reference" if level == "storage" else "list model"
        return _told(proofs, Judge(adapter.name, oracle, level), options.format)


def _runs(worker: Worker, adapter: Description) -> Runs:
    def runs(trace: Trace) -> TrialResult:
        level = trial.level_of(trace, adapter)
        session = RemoteSession(worker, trial.observables(adapter, level))
        return trial.run(trace, session, adapter, level)

    return runs


def _reference(trace: Trace) -> TrialResult:
    """The reference, judged by the list model."""
    return trial.run(trace, CitingReference(), description(Reference().describe()), "visible")


def chapters(options: Namespace) -> list[str]:
    """Those asked for."""
    return list(vectors.planned()) if ALL in options.chapter else options.chapter or ["ring"]


def _all(options: Namespace, windows: int, runs: Runs) -> Iterator[Proof]:
    """A proof for each plan of the chapters, up to the first counterexample."""
    for plan, k in _chosen(options, windows):
        yield (proof := _timed(plan, k, runs))
        if proof.counterexample is not None:
            return


def _of_the_reference(options: Namespace) -> Iterator[Proof]:
    """The same of the reference, as many at once as there are cores: it needs no worker."""
    chosen = list(_chosen(options, OF_THE_REFERENCE))
    fork = multiprocessing.get_context("fork")
    with fork.Pool(min(len(chosen), os.cpu_count() or 1), _begin, (chosen,)) as pool:
        for i, found in enumerate(pool.imap(_one, range(len(chosen)))):
            yield (proof := Proof(chosen[i][0], **found))
            if proof.counterexample is not None:
                return


PLANNED: list[tuple[Plan, int]] = []
"""What the processes of a pool choose from by number: plans hold functions, which cannot be sent."""


def _begin(chosen: list[tuple[Plan, int]]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    PLANNED[:] = chosen


def _one(number: int) -> dict[str, Any]:
    """What a proof says beside its plan."""
    proof = _timed(*PLANNED[number], _reference)
    return {f.name: getattr(proof, f.name) for f in fields(proof) if f.name != "plan"}


def _timed(plan: Plan, k: int, runs: Runs) -> Proof:
    began = time.monotonic()
    proof = prove.proved(plan, k, runs, _tells)
    proof.seconds = time.monotonic() - began
    return proof


def _chosen(options: Namespace, windows: int) -> Iterator[tuple[Plan, int]]:
    """The plans asked for, each with its k."""
    largest = windows if options.window is None else options.window
    for chapter in chapters(options):
        yield from ((plan, _extra(options, chapter, windows)) for plan in plans(chapter, largest))


def _extra(options: Namespace, chapter: str, windows: int) -> int:
    """States more than the reference that are allowed for: of a ring over an adapter one, unless said otherwise."""
    if options.k is not None:
        return int(options.k)
    return int(chapter == "ring" and windows == OF_AN_ADAPTER)


def plans(chapter: str, largest: int) -> list[Plan]:
    """What is proved of a chapter: of a ring every window up to the largest. Raises BadInput."""
    if chapter not in vectors.planned():
        raise BadInput(f"{chapter}: no states to explore; those that have are {', '.join(vectors.planned())}")
    strategies = importlib.import_module(f"kvconform.generate.strategies.{chapter}")
    made: list[Plan] = strategies.plans(range(1, largest + 1)) if chapter == "ring" else strategies.plans()
    return [p for p in made if (p.start.config.window or 0) <= largest]


def _tells(message: str) -> None:
    sys.stderr.write(f"kvconform prove: {message}\n")
    sys.stderr.flush()


HEAD = (
    *("configuration", "states", "transitions", "k", "identifiers", "traces", "operations", "seconds", "result"),
)


def _told(proofs: list[Proof], judge: Judge, how: str) -> int:
    """Print what came of it; 1 if there is a counterexample."""
    document = claims.document(proofs, judge)
    if how == "json":
        print(json.dumps(document, indent=1))
    else:
        rows = [[p[name] for name in HEAD] for p in document["proofs"]]
        print(tabulate(rows, HEAD, tablefmt="github" if how == "markdown" else "simple"))
        print("\n" + claims.printed(document))
    return int(document["counterexample"] is not None)
