"""`kvconform prove ADAPTER`: every state of small configurations, every move from each; what follows, exactly."""

from __future__ import annotations

import importlib
import sys
from argparse import Namespace
from collections.abc import Iterator

from tabulate import tabulate

from kvadapters.reference import Reference
from kvconform import prove, trial, vectors
from kvconform.cover import Plan
from kvconform.prove import Proof, Runs
from kvconform.remote import RemoteSession
from kvconform.replay import Cited
from kvconform.trial import Outcome
from kvconform.worker import Worker, python_worker
from kvspec.contract import description
from kvspec.errors import BadInput
from kvspec.notation import sentence
from kvspec.trace import Trace

OF_THE_REFERENCE = 8
"""Windows that are proved of the reference unless the caller says otherwise."""
OF_AN_ADAPTER = 4


def main(options: Namespace) -> int:
    """Prove, print what was done and what follows; 1 if there is a counterexample."""
    if options.adapter == "reference" and not options.process:
        return _told(list(_all(options, OF_THE_REFERENCE, 0, _reference)), "list model")
    with Worker(list(options.process) or python_worker(options.adapter), deadline=options.deadline) as worker:
        adapter = worker.describe()
        missing = set(options.profile) - set(adapter.profiles)
        if missing:
            raise BadInput(f"{adapter.name} does not declare {', '.join(sorted(missing))}")

        def runs(trace: Trace) -> Outcome:
            level = trial.level_of(trace, adapter)
            session = RemoteSession(worker, trial.observables(adapter, level))
            return trial.run(trace, session, adapter, level)

        return _told(list(_all(options, OF_AN_ADAPTER, 1, runs)), "reference")


def _reference(trace: Trace) -> Outcome:
    """The reference, judged by the list model."""
    return trial.run(trace, Cited(), description(Reference().describe()), "visible")


def _all(options: Namespace, windows: int, k: int, runs: Runs) -> Iterator[Proof]:
    """A proof for each plan of the profiles, up to the first counterexample."""
    largest = windows if options.window is None else options.window
    for profile in options.profile or ["ring"]:
        for plan in plans(profile, largest):
            proof = prove.proved(plan, k if options.k is None else options.k, runs, _tells)
            yield proof
            if proof.counterexample is not None:
                return


def plans(profile: str, largest: int) -> list[Plan]:
    """What is proved of a profile: of a ring every window up to the largest. Raises BadInput."""
    if profile not in vectors.planned():
        raise BadInput(f"{profile}: no states to explore; those that have are {', '.join(vectors.planned())}")
    strategies = importlib.import_module(f"kvconform.strategies.{profile}")
    made: list[Plan] = strategies.plans(range(1, largest + 1)) if profile == "ring" else strategies.plans()
    return [p for p in made if (p.start.config.window or 0) <= largest]


def _tells(message: str) -> None:
    sys.stderr.write(f"kvconform prove: {message}\n")
    sys.stderr.flush()


def _told(proofs: list[Proof], oracle: str) -> int:
    rows = [(p.plan.name, p.states, p.transitions, p.k, p.traces, p.operations, _result(p)) for p in proofs]
    print(tabulate(rows, ("configuration", "states", "transitions", "k", "traces", "operations", "result")))
    failed = next((p.counterexample for p in proofs if p.counterexample is not None), None)
    if failed is not None:
        short = failed.trace.cut(len(failed.steps))
        print(f"\nA shortest counterexample, {len(short.ops)} operations:\n  {sentence(short)}")
        print(f"  {', '.join(failed.blamed) or 'no clause'}: {failed.differences[0].message}")
        return 1
    print("\n" + claim(proofs, oracle))
    return 0


def _result(proof: Proof) -> str:
    if proof.counterexample is not None:
        return "counterexample"
    return "holds" if proof.holds else "agrees; states not told apart"


def claim(proofs: list[Proof], oracle: str) -> str:
    """What follows, and what it rests on."""
    k, apart = proofs[0].k, [p for p in proofs if p.told_apart]
    count = f"{sum(p.states for p in proofs)} states and {sum(p.transitions for p in proofs)} transitions"
    one = (
        f"The state graphs of {len(proofs)} configurations are closed: {count}. On every transition, with up to "
        f"{k} more moves behind it and then what tells states apart, the adapter did what the {oracle} does."
    )
    two = (
        f"So in {len(apart)} of them it agrees with the {oracle} on every sequence of these moves, however long, "
        f"provided that what it does depends neither on the data of rows nor on the absolute position, and that "
        f"it has at most {k} more states than the reference (Chow 1978). Buffers used in turns double the states "
        f"there may be: for them the claim holds of runs up to the length tried."
    )
    return one + "\n" + two
