"""The laws of snapshots."""

from __future__ import annotations

from functools import partial

from hypothesis import strategies as st

from kvconform.laws.caches import difference, start, trace
from kvconform.laws.law import Sides, register
from kvspec.geometry import Config
from kvspec.operations.table import caches_with

law = partial(register, compare=difference)


@law("SNAP-30", needs=("snapshot",), kinds=caches_with("restore"))
def split_merge(draw: st.DrawFn, config: Config) -> Sides:
    """A snapshot split and merged again, then restored; or restored as it was."""
    before, offset = start(draw)
    before, offset = ["append 2", *before, "snapshot s"], offset + 2
    at = draw(st.integers(-1, offset + 1))
    halves = [f"split s {at} p q", "merge p q s"]
    after = ["append 2", f"restore s {offset}"]
    return Sides(trace(config, *before, *halves, *after), trace(config, *before, *after))


@law("SNAP-31", needs=("snapshot",), kinds=caches_with("restore"))
def snapshot_restore(draw: st.DrawFn, config: Config) -> Sides:
    """Saved, changed and restored, or left alone."""
    before, offset = start(draw, least=1)
    changes = draw(st.lists(st.sampled_from(("append 1", "append 3", "view", "free")), max_size=3))
    return Sides(trace(config, *before, "snapshot s", *changes, f"restore s {offset}"), trace(config, *before))
