"""Measuring: turns, rounds, medians and quartiles, by clocks and jobs that are told what to say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kvprofile import measure
from kvprofile.measure import Pace, Party
from kvprofile.operation import ALWAYS, Job
from kvprofile.quartiles import ratios, scaled, spread
from kvprofile.random_rows import noise
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
