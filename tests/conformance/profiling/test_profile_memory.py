"""The memory that a profile may hold, and what it gives back."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvprofile import budget as budget_module
from kvprofile import profile_run
from kvprofile.budget import budget
from kvprofile.case import Case
from kvprofile.measure import Pace
from kvprofile.model_shapes import GPT2
from kvprofile.peers import Found
from kvprofile.random_rows import turns
from kvspec.contract import description
from support.fakes.profiled import SMALL, Broken, profiled


def test_as_many_take_turns_as_fill_half_of_the_memory() -> None:
    assert [turns(1000, n) for n in (50, 100, 499, 500, 10_000)] == [10, 5, 2, 1, 1]
    assert turns(1 << 30, 1, 64) == 64


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
