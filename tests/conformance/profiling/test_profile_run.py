"""A profile's cases: what is left out, what is kept, and by which clock peers are timed."""

from __future__ import annotations

from typing import Any

import pytest

from kvprofile import profile_run
from kvprofile.case import Case
from kvprofile.measure import Pace
from kvprofile.model_shapes import GPT2
from kvprofile.operation import Job
from kvprofile.peers import Found
from kvprofile.peers.numpy_peer import Numpy
from kvprofile.subject import Subject
from kvspec.contract import description
from support.fakes.profiled import ROOM, SMALL, Broken, Clocked, profiled


def test_a_case_that_fails_is_left_out_with_its_reason_and_the_next_is_measured() -> None:
    found = profiled(Broken(4, ValueError), Case("snapshot", GPT2, 8), SMALL)
    assert [s.reason for s in found.skipped] == ["the adapter does not declare snapshot", "ValueError: no more"]
    found = profiled(Broken(1 << 60, ValueError), Case("snapshot", GPT2, 8), SMALL)
    assert [m.id for m in found.measured] == [SMALL.id]


def test_without_a_clock_there_are_no_device_times_and_no_limits() -> None:
    (found,) = profiled(Broken(1 << 60, ValueError), SMALL, peers=(Numpy(),)).measured
    assert found.device_ms is found.limit is found.fraction is found.metered is None
    assert found.rate is not None and found.rate.median > 0 and found.peers[0].peer == "numpy"


class OnAStream(Numpy):
    """A peer that computes on stream 7."""

    name, stream = "on a stream", 7


@pytest.mark.parametrize("clocked", [True, False])
def test_peers_have_the_clock_of_the_device_where_it_times_their_stream(clocked: bool) -> None:
    """The adapter is busy for 2 ms an operation, the peer for 1 ms by the same clock."""

    def elapsed(work: Any) -> float:
        done.clear()
        work()
        return 0.001 * len(done)

    done, clocks, adapter, peer = list[int](), list[Any](), Clocked(), OnAStream()
    if clocked:
        adapter.clock_of = lambda stream: elapsed if stream == 7 else None  # type: ignore[attr-defined]
    peer.job = lambda case, memory: clocks.append(peer.elapsed) or Job(done.append)  # type: ignore
    (found,) = profiled(adapter, Case("append", GPT2, 8, 4), peers=(peer,)).measured
    (theirs,) = found.peers
    assert (theirs.get("on_device") is True) == clocked
    assert clocks == [elapsed if clocked else None], "its form is chosen by that clock"
    if clocked:
        assert theirs.ms.median == pytest.approx(1) and theirs.ratio.median == pytest.approx(2)


def test_each_case_is_kept_as_it_ends() -> None:
    kept = list[Any]()
    adapter = Clocked()
    made = profile_run.Session(
        adapter,
        description(adapter.describe()),
        Found((), []),
        ROOM,
        Pace(2, 1e-6, 1),
        lambda t: None,
        lambda case: kept.append(case.id),
    )
    made.run([Case("snapshot", GPT2, 8), SMALL])
    assert kept == ["snapshot/gpt-2-small/f16/8", SMALL.id]


def test_the_rows_that_pass_by_are_those_of_all_caches_and_arrays() -> None:
    subject = Subject(Clocked(), SMALL, SMALL.config(), 1 << 16)
    subject.rows(2)
    subject.open("growing")
    subject.open("page", contexts=3)
    assert (subject.opened, subject.rotates(1000)) == (4, 4000 + 2 * SMALL.config().row_bytes)


def test_an_interrupt_keeps_what_was_measured() -> None:
    adapter = Broken(1 << 60, KeyboardInterrupt)
    made = profile_run.Session(
        adapter, description(adapter.describe()), Found((), []), ROOM, Pace(2, 1e-6, 1), lambda t: None
    )
    made.run([SMALL])
    adapter.after = 5
    with pytest.raises(KeyboardInterrupt):
        made.run([SMALL])
    assert [m.id for m in made.measured] == [SMALL.id] and made.skipped == []
