"""The suite has teeth: every systematic fault in the reference's buckets and graphs is found by it."""

from __future__ import annotations

from typing import Any, ClassVar

import planted_bucket
import pytest
import teeth
from local import LocalBench
from mutation import Mutant

import kvref.bucket
import kvref.graph
from kvadapters.reference import Reference
from kvconform.laws import LAWS
from kvconform.suite import common

NO_FAULTS: dict[teeth.Named, str] = {
    ("block", "end > self.bounds[-1]: Gt swapped"): "a citation alone",
    ("encode", "True became False"): "there are as many keys as values in a pair",
    ("_count", "1 became 2"): "-2 is no number of rows either",
}
"""Faults in the buckets that are none, by function and change, each with the reason."""

NO_FAULTS_OF_GRAPHS: dict[teeth.Named, str] = {
    ("write", "True became False"): "there are as many keys as values in a pair",
    ("__init__", "1 became 2", 1): "no cache is opened without layers",
    ("fits", "1 became 2"): "-2 is no number of rows either",
}

BUCKET = teeth.Faults(teeth.mutants(kvref.bucket), NO_FAULTS)
GRAPH = teeth.Faults(teeth.mutants(kvref.graph), NO_FAULTS_OF_GRAPHS)

EXAMPLES, TRACES = teeth.examples_of("bucket"), teeth.traces_of("bucket")


def having(bucket: Any) -> Any:
    """The reference with this bucketed cache."""

    class Faulty(Reference):
        caches: ClassVar[dict[str, Any]] = {**Reference.caches, "bucket": bucket}

    return Faulty()


def faulty(m: Mutant) -> Any:
    return having(teeth.module(m.text).Bucket)


def faulty_graph(m: Mutant) -> Any:
    """The sound bucketed cache over faulty graphs."""
    graph, sound = teeth.module(m.text), teeth.module(teeth.text(kvref.bucket))
    for name in ("Graph", "Handles", "asks", "fits", "over"):
        setattr(sound, name, getattr(graph, name))
    sound.Bucket.graph = graph.Graph
    return having(sound.Bucket)


def test_there_are_faults_enough() -> None:
    assert len(BUCKET.every) > 150 and len(GRAPH.every) > 60
    named = {m.function for m in (*BUCKET.every, *GRAPH.every)}
    assert named >= {"prefill", "block", "_ready", "_carried", "_install", "_compact", "cut", "run", "over", "asks"}


@BUCKET.each()
def test_every_fault_in_the_buckets_is_found(m: Mutant) -> None:
    assert teeth.found_by(faulty(m), EXAMPLES, TRACES)


@GRAPH.each()
def test_every_fault_in_the_graphs_is_found(m: Mutant) -> None:
    assert teeth.found_by(faulty_graph(m), EXAMPLES, TRACES)


@BUCKET.each_argued()
def test_what_is_argued_to_be_no_fault_is_found_by_nothing(m: Mutant) -> None:
    assert not teeth.found_by(faulty(m), EXAMPLES, TRACES), BUCKET.none[BUCKET.named(m)]


@GRAPH.each_argued()
def test_what_is_argued_to_be_no_fault_of_graphs_is_found_by_nothing(m: Mutant) -> None:
    assert not teeth.found_by(faulty_graph(m), EXAMPLES, TRACES), GRAPH.none[GRAPH.named(m)]


@pytest.mark.parametrize("faults", [BUCKET, GRAPH], ids=["buckets", "graphs"])
def test_every_argument_is_about_a_fault_that_there_is(faults: teeth.Faults) -> None:
    assert not faults.unfounded()


class ForgottenOnRefresh(kvref.bucket.Bucket):
    """A refresh leaves the newest row out."""

    def bind(self, refresh: bool) -> None:
        super().bind(refresh)
        if refresh and self.past_ > 1:
            self.past_ -= 1


@pytest.mark.parametrize(
    ("clause", "bucket"),
    [
        ("BUCKET-39", type("Seen", (kvref.bucket.Bucket,), {"graph": planted_bucket.ZerosSeen})),
        ("BUCKET-40", type("Seen", (kvref.bucket.Bucket,), {"graph": planted_bucket.ZerosSeen})),
        ("BUCKET-41", ForgottenOnRefresh),
        ("BUCKET-42", planted_bucket.CountedWhenAsked),
    ],
)
def test_a_law_is_broken_by_who_breaks_it(clause: str, bucket: Any) -> None:
    bench = LocalBench(having(bucket), examples=60)
    law = next(law for law in LAWS if law.clause == clause)
    common.law(bench, law)
    assert clause in bench.tally.own
