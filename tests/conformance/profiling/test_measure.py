"""Measuring: turns, rounds, medians and quartiles, by clocks and jobs that are told what to say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kvprofile import budget as budget_module
from kvprofile import measure, profile_run
from kvprofile.budget import Budget, budget
from kvprofile.case import Case
from kvprofile.measure import Pace, Party
from kvprofile.model_shapes import GPT2
from kvprofile.operation import ALWAYS, Job
from kvprofile.peers import Found, host_arrays
from kvprofile.peers.numpy_peer import Arrays, Numpy
from kvprofile.quartiles import ratios, scaled, spread
from kvprofile.random_rows import noise, turns
from kvprofile.subject import Subject
from kvprofile.workloads import OPERATIONS
from kvspec.contract import description, timing
from kvspec.contract.timing import Streams
from kvspec.records.profile import Spread


def test_the_spread_is_the_quartiles() -> None:
    assert spread([4.0]) == Spread(median=4, low=4, high=4)
    assert spread([5, 1, 4, 2, 3]) == Spread(median=3, low=2, high=4)
    assert spread([1, 2, 3, 10]) == Spread(median=2.5, low=1.75, high=4.75)
    assert scaled([1, 2, 3], 10).median == 20


def test_ratios_are_taken_round_by_round() -> None:
    """Both were slow in the second round; the ratio of medians would be 1.5, of rounds it is 2."""
    assert ratios([2, 20, 3], [1, 10, 2]) == Spread(median=2, low=1.75, high=2)
    with pytest.raises(ValueError):
        ratios([1, 2], [1])


def test_a_turn_goes_on_where_the_last_one_ended_and_begins_anew_after_a_reset() -> None:
    done: list[Any] = []
    party = Party("", Job(done.append, 5, lambda: done.append("reset")), operations=2)
    for _ in range(3):
        party.turn()
    assert done == [0, 1, 2, 3, "reset", 0, 1]


def test_times_are_of_one_operation_and_the_device_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each operation keeps the host for 3 s and the device for 1; waiting for the device takes 2 s more. Reading
    its clock takes 100 s, which count nowhere."""
    now = [0.0]

    def pass_by(seconds: float) -> None:
        now[0] += seconds

    def elapsed(work: Any) -> float:
        work()
        pass_by(100)
        return 4.0

    monkeypatch.setattr(measure.time, "perf_counter", lambda: now[0])
    party = Party("", Job(lambda i: pass_by(3), ALWAYS), elapsed, lambda: pass_by(2), operations=4)
    taken = party.turn()
    assert taken == (1.0, 3.0, 3.5)
    assert Party("", party.job, None).turn().device is None


def test_a_device_times_only_so_many_operations_at_once() -> None:
    parts = list[list[int]]()

    def elapsed(work: Any) -> float:
        parts.append([])
        work()
        return 1.0

    party = Party("", Job(lambda i: parts and parts[-1].append(i)), elapsed, operations=40, at_once=16)
    assert party.turn().device == 3 / 40
    assert [len(part) for part in parts] == [16, 16, 8] and [i for part in parts for i in part] == list(
        range(40, 80)
    )


def test_warming_up_finds_how_many_operations_last_long_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    now, costs = [0.0], [0.3, *[0.001] * 10_000]
    monkeypatch.setattr(measure.time, "perf_counter", lambda: now[0])

    def do(i: int) -> None:
        now[0] += costs.pop(0)

    party = Party("", Job(do, ALWAYS))
    party.warm(0.02)
    assert 20 <= party.operations <= 22, "the first, which compiled, does not count"
    few = Party("", Job(do, 7))
    few.warm(0.02)
    assert few.operations == 7, "no more than there can be between resets"
    costs[:] = [1.0, 1.0, 1.0]
    long = Party("", Job(do, ALWAYS))
    long.warm(0.02)
    assert (long.operations, len(costs)) == (1, 1), "what lasts a second is not done three times"
    costs[:] = [2.0, 0.001, *[0.3] * 3, *[0.00001] * 10_000]
    late = Party("", Job(do, ALWAYS))
    late.warm(0.02)
    assert late.operations > 1_900, "nor does a later turn count in which something was compiled"


def test_all_take_turns_in_every_round_and_another_begins() -> None:
    order: list[str] = []
    parties = [Party(name, Job(lambda i, n=name: order.append(n), ALWAYS)) for name in "abc"]
    measure.rounds(parties, Pace(3, 1e-9, 60))
    counted = [name for i, name in enumerate(order) if i == 0 or order[i - 1] != name]
    assert "".join(counted).endswith("abcbcacab") and all(len(p.taken) == 3 for p in parties)


def test_a_case_that_takes_too_long_has_fewer_rounds_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(measure.time, "perf_counter", lambda: now[0])

    def do(i: int) -> None:
        now[0] += 1

    parties = [Party(name, Job(do, ALWAYS)) for name in "ab"]
    measure.rounds(parties, Pace(9, 0.5, 10))
    assert [len(p.taken) for p in parties] == [4, 4]


def test_what_is_late_has_less_time_but_never_none() -> None:
    pace = Pace(9, 0.02, 6, 480)
    assert [pace.among(*left).case for left in ((10, 480), (10, 30), (10, -5))] == [6, 3, measure.LEAST]


def test_the_meter_is_read_around_whole_operations() -> None:
    class Meters:
        launches = 0

        def meter(self) -> dict[str, int]:
            return {"launches": self.launches}

        def launch(self, i: int) -> None:
            self.launches += 3

    adapter = Meters()
    assert measure.metered(adapter, Party("", Job(adapter.launch, ALWAYS), operations=5)) == {"launches": 3}
    assert measure.metered(object(), Party("", Job(adapter.launch, ALWAYS))) is None


def test_rows_are_random_never_zeros_and_differ_from_turn_to_turn() -> None:
    a, b = noise((1 << 12,), "f16", 0), noise((1 << 12,), "f16", 1)
    assert len(np.unique(a)) > 2000 and not np.array_equal(a, b) and np.isfinite(a).all()
    assert noise((3, 1 << 21), "f32").shape == (3, 1 << 21)


def test_as_many_take_turns_as_fill_half_of_the_memory() -> None:
    assert [turns(1000, n) for n in (50, 100, 499, 500, 10_000)] == [10, 5, 2, 1, 1]
    assert turns(1 << 30, 1, 64) == 64


class Broken:
    """Its appends fail after so many; it has no clock and no meter."""

    def __init__(self, after: int, raises: type[BaseException]) -> None:
        self.after, self.raises = after, raises

    def describe(self) -> dict[str, Any]:
        return {"name": "broken", "chapters": {"growing": "visible"}}

    def open(self, kind: str, config: Any) -> Broken:
        return self

    def append(self, keys: Any, values: Any) -> None:
        self.after -= 1
        if self.after < 0:
            raise self.raises("no more")

    def rewind(self, to: int) -> None:
        pass


ROOM = Budget(rotation=1 << 16, share=1 << 18)


def profiled(adapter: Any, *some: Case, peers: Any = ()) -> profile_run.Session:
    made = profile_run.Session(
        adapter, description(adapter.describe()), Found(peers, []), ROOM, Pace(2, 1e-6, 1), lambda t: None
    )
    made.run(some)
    return made


SMALL = Case("append", GPT2, 8)


def test_a_case_that_fails_is_left_out_with_its_reason_and_the_next_is_measured() -> None:
    found = profiled(Broken(4, ValueError), Case("snapshot", GPT2, 8), SMALL)
    assert [s.reason for s in found.skipped] == ["the adapter does not declare snapshot", "ValueError: no more"]
    found = profiled(Broken(1 << 60, ValueError), Case("snapshot", GPT2, 8), SMALL)
    assert [m.id for m in found.measured] == [SMALL.id]


def test_without_a_clock_there_are_no_device_times_and_no_limits() -> None:
    (found,) = profiled(Broken(1 << 60, ValueError), SMALL, peers=(Numpy(),)).measured
    assert found.device_ms is found.limit is found.fraction is found.metered is None
    assert found.rate is not None and found.rate.median > 0 and found.peers[0].peer == "numpy"


class Clocked(Broken):
    """An append keeps its device busy for 2 ms, a stream of 10^8 bytes for 50 ms."""

    def __init__(self) -> None:
        super().__init__(1 << 60, ValueError)
        self.busy = 0.0

    def append(self, keys: Any, values: Any) -> None:
        self.busy += 0.002

    def clock(self) -> str:
        return "told"

    def elapsed(self, work: Any) -> float:
        self.busy = 0.0
        work()
        return self.busy

    def synchronise(self) -> None:
        pass

    def stream(self) -> None:
        self.busy += 0.05

    def streams(self, most: int) -> Streams:
        return Streams(self.stream, self.stream, self.stream, 10**8, "told")


def test_the_rate_is_bytes_over_device_time_and_the_share_is_of_the_limit() -> None:
    """GPT-2 small has rows of 3,072 B in f16; 4 of them read and written in 2 ms are 12.288 MB/s. A copy of 10^8
    bytes reads and writes them in 50 ms: 4 GB/s."""
    session_ = profiled(Clocked(), Case("append", GPT2, 8, 4))
    (found,) = session_.measured
    assert found.device_ms is not None and found.rate is not None and found.fraction is not None
    assert found.device_ms.median == pytest.approx(2) and found.rate.median == pytest.approx(0.012288)
    assert found.limit == "copy" and found.fraction.median == pytest.approx(0.012288 / 4)
    limits = {limit.name: limit for limit in session_.limits()}
    assert {name: limit.rate.median for name, limit in limits.items()} == pytest.approx(
        {"read": 2, "write": 2, "copy": 4}
    )
    assert [limits[n].rounds for n in ("read", "copy")] == [2, 4], "its limit took part in the rounds of the case"


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


@pytest.mark.parametrize(("cache", "marked"), [(0, False), (10_000, False), (1 << 16, True)])
def test_what_a_cache_may_hold_has_no_share_of_a_limit_of_one_size(cache: int, marked: bool) -> None:
    adapter: Any = Clocked()
    adapter.cache_bytes = cache
    (found,) = profiled(adapter, Case("append", GPT2, 8, 4)).measured
    assert (found.get("in_cache") is True) == (found.fraction is None) == (found.limit is None) == marked
    assert profile_run.told(found).endswith("in cache") == marked and found.rate is not None


class Footprints(Clocked):
    """Its limits stream over as many bytes as they are asked to, at 1 GB/s in its cache and 0.1 GB/s beyond."""

    cache_bytes = 1 << 20

    def streams(self, most: int) -> Streams:
        return self._over(1 << 24)

    def _over(self, nbytes: int) -> Streams:
        def stream() -> None:
            self.busy += nbytes / (1e9 if nbytes <= self.cache_bytes else 1e8)

        return Streams(stream, stream, stream, nbytes, "told", over=self._over)


@pytest.mark.parametrize("whole", [1 << 16, 1 << 25])
def test_a_limit_has_the_footprint_of_its_case(whole: int) -> None:
    """A copy of n bytes reads and writes them: its footprint is 2 n. The cases rotate through about 73 KB."""
    adapter = Footprints()
    adapter.streams = lambda most: adapter._over(whole)  # type: ignore[method-assign]
    session_ = profiled(adapter, Case("append", GPT2, 8, 4))
    (found,), rotated = session_.measured, 1 << 18
    assert found.get("in_cache") is True and found.limit == "copy" and found.fraction is not None
    assert found.get("limit_bytes") == min(rotated, 2 * whole)
    assert found.fraction.median == pytest.approx(0.012288 / 2), "the limit at hand lies in the cache too"
    limits = {limit.name: (limit.bytes, limit.rounds) for limit in session_.limits()}
    assert limits["copy"] == (2 * whole, 4 if 2 * whole < rotated else 2), (
        "limits of other footprints are not summed up"
    )


def test_all_parties_share_a_quarter_of_the_free_memory() -> None:
    """Eight parties: the adapter, five peers, the blocks of limits, the arrays of peers."""
    large = 480 << 20
    for free in (1 << 20, 1 << 30, 24 << 30, 1 << 40):
        found = budget(None, large, 5, free=free)
        assert 8 * found.share <= free // 4 and found.rotation == min(8 * large, found.share)
        for held in (0, found.share // 3, found.share):
            assert found.rotated(held) + held <= found.share + 1
    assert budget(7 << 20, large, 5, free=24 << 30).rotation == 7 << 20
    assert budget(7 << 40, large, 5, free=24 << 30).rotation == (24 << 30) // 32


def test_a_container_may_have_less_memory_than_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget_module, "CGROUP", tmp_path)
    machine = budget_module.free_memory()
    for name, text in (("max", "900000\n"), ("current", "500000\n"), ("stat", "anon 7\ninactive_file 1000\n")):
        (tmp_path / f"memory.{name}").write_text(text)
    assert budget_module.free_memory() == 401_000 < machine
    (tmp_path / "memory.max").write_text("max\n")
    assert budget_module.free_memory() > 401_000


def test_what_a_pool_keeps_is_given_back_after_each_case_also_one_that_fails() -> None:
    class Pooled(Broken):
        given_back = 0

        def give_back(self) -> None:
            self.given_back += 1

    adapter = Pooled(4, ValueError)
    assert [s.reason for s in profiled(adapter, SMALL, SMALL).skipped] == ["ValueError: no more"] * 2
    assert adapter.given_back == 2


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


def test_linux_tells_of_the_last_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "CACHES", tmp_path)
    assert timing.host_cache() == 0
    for i, size in enumerate(("32K", "32768K", "1024K")):
        (tmp_path / f"index{i}").mkdir()
        (tmp_path / f"index{i}" / "size").write_text(size + "\n")
    assert timing.host_cache() == 32 << 20


def test_what_holds_more_than_the_memory_allows_is_left_out() -> None:
    found = profiled(Broken(1 << 60, ValueError), Case("append", GPT2, 1 << 20))
    assert "it holds 6144 MiB, and each party may hold 0" in found.skipped[0].reason


@pytest.mark.parametrize(("nbytes", "left"), [(48 << 10, False), (40 << 10, True)])
def test_a_gpu_may_hold_a_part_of_its_memory(nbytes: int, left: bool) -> None:
    """8 rows of GPT-2 small, in f16, are held twice: 48 KiB."""

    adapter, room = Broken(1 << 60, ValueError), budget(None, 0, 3, device=8 * nbytes)
    made = profile_run.Session(
        adapter, description(adapter.describe()), Found((), []), room, Pace(2, 1e-6, 1), lambda t: None
    )
    made.run([SMALL])
    assert bool(made.skipped) == left == (not made.measured)


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


@pytest.mark.parametrize("operation", [o for o in OPERATIONS if o not in ("rewind", "layers append")])
def test_the_peers_do_the_work_of_every_operation_that_they_have(operation: str) -> None:
    rows = 2 if operation in ("copy", "scatter") else 1
    case = Case(operation, GPT2, 64, rows, layout="token", page=16, pairing="neox")
    job = Numpy().job(case, 1 << 16)
    assert job is not None
    job.do(0)
    job.do(1)


def test_the_numpy_peer_attends_as_the_formula_says() -> None:
    """Two queries of two heads that share a row's head, over three rows: each by its own sum of exponentials."""
    q, k, v = (noise(shape, "f32", i) for i, shape in enumerate([(1, 2, 2, 4), (1, 1, 3, 4), (1, 1, 3, 4)]))
    found = Arrays().attend(q, k, v)
    for head in range(2):
        for i in range(2):
            seen = 2 + i
            weights = np.exp(k[0, 0, :seen] @ q[0, head, i] / 2)
            assert np.allclose(found[0, head, i], weights @ v[0, 0, :seen] / weights.sum(), atol=1e-6)


def test_a_peer_writes_where_the_cache_would() -> None:
    rows = host_arrays.Rows(Arrays(), Case("append", GPT2, 4, 2), 1)
    targets = rows.caches(8)
    before = [a.copy() for a in targets[0]]
    new = rows.caches(2)[0]
    rows.write(targets[0], 2, 4, new)
    for target, old, written in zip(targets[0], before, new, strict=True):
        assert np.array_equal(target[:, :, 4:6], written)
        assert np.array_equal(np.delete(target, [4, 5], 2), np.delete(old, [4, 5], 2))
