"""The configurations of a proof as tasks: each is proved by itself, in any free process."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import cache, partial
from typing import Any, NamedTuple

from kvconform.generate.claims.fit_to_adapter import fitted
from kvconform.generate.registry import planned
from kvconform.generate.strategies.plan_moves import Plan
from kvconform.judge import trial
from kvconform.judge.trial_result import TrialResult
from kvconform.message import tell
from kvconform.oracle.reference import CitingReference, claims
from kvconform.worker.client import Worker, python_worker
from kvconform.worker.remote_session import RemoteSession
from kvconform.worker.tasks import Pool, completed
from kvspec.contract import Description
from kvspec.errors import BadInput
from kvspec.trace import Trace
from kvworkshop.prove.proof import Proof, Runs, proved


class Candidate(NamedTuple):
    """The adapter to prove, by its name or by the command that starts it."""

    adapter: str
    command: tuple[str, ...] = ()
    deadline: float = 20.0
    """Seconds for one operation."""

    @property
    def is_reference(self) -> bool:
        """Tell whether it is the reference, which the list model judges without a worker."""
        return self.adapter == "reference" and not self.command

    def worker(self) -> Worker:
        """Its worker."""
        return Worker(list(self.command) or python_worker(self.adapter), deadline=self.deadline)


class Configuration(NamedTuple):
    """One plan of a chapter, by name, among those up to the largest window; and the k of its proof."""

    chapter: str
    largest: int
    plan: str
    k: int


def in_order(pool: Pool, candidate: Candidate, chosen: Sequence[Configuration]) -> Iterator[Proof]:
    """Prove the configurations in order, up to the first counterexample."""
    early = dict[Configuration, Proof]()
    waiting = iter(chosen)
    awaited = next(waiting, None)
    for (_, configuration), future in completed(pool, prove, ((candidate, c) for c in chosen)):
        early[configuration] = Proof(plan(configuration), **future.result())
        while awaited in early:
            yield (proof := early[awaited])
            if proof.counterexample is not None:
                return
            awaited = next(waiting, None)


def prove(candidate: Candidate, configuration: Configuration) -> dict[str, Any]:
    """Prove one configuration. Give the Proof's fields without its plan, because a plan holds functions, which
    cannot be sent."""
    began = time.monotonic()
    proof = proved(plan(configuration), configuration.k, _runs(candidate), partial(tell, command="prove"))
    proof.seconds = time.monotonic() - began
    return {f.name: getattr(proof, f.name) for f in fields(proof) if f.name != "plan"}


@cache
def _runs(candidate: Candidate) -> Runs:
    """Give a function that judges a trace in this process, with its own worker."""
    if candidate.is_reference:
        return _by_the_list_model
    worker = candidate.worker()
    adapter = worker.describe()
    return partial(_on_what_is_claimed, worker, adapter)


def _on_what_is_claimed(worker: Worker, adapter: Description, trace: Trace) -> TrialResult | None:
    """Judge a trace without what the adapter does not claim, or None if nothing of it is claimed."""
    for fit in fitted([trace], adapter):
        return trial.on(fit, partial(RemoteSession, worker), adapter)
    return None


def _by_the_list_model(trace: Trace) -> TrialResult:
    return trial.run(trace, CitingReference(), claims(), "visible")


def plan(configuration: Configuration) -> Plan:
    """Find the plan of a configuration."""
    every = plans(configuration.chapter, configuration.largest)
    return next(plan for plan in every if plan.name == configuration.plan)


def plans(chapter: str, largest: int) -> list[Plan]:
    """Give the plans to prove for a chapter; for a ring, every window up to the largest. Raises BadInput."""
    if chapter not in (known := planned()):
        raise BadInput(f"{chapter}: prove has no states to explore; it has some for {', '.join(known)}")
    made = known[chapter](range(1, largest + 1)) if chapter == "ring" else known[chapter]()
    return [p for p in made if (p.start.config.window or 0) <= largest]
