"""Bugs of snapshots: what they hold, where they may go, how they are cut and joined; planted in the reference."""

from __future__ import annotations

import numpy as np

from kvconform.mutants.planting import having, planted
from kvconform.mutants.real.ring import zeros_behind
from kvref import snapshot
from kvref.growing import Growing
from kvref.ring import Ring
from kvref.snapshot import Snapshot
from kvspec.contract import Pair


class SavedUpToTheIndex(Ring):
    """Rows are saved up to the index, though behind it there are older ones."""

    def snapshot(self, start: int) -> Snapshot | None:
        made = super().snapshot(start)
        if made is not None:
            made._rows = Pair(*(np.array(a[:, :, : self.index]) for a in made.rows))
        return made


class IndexNotSaved(Ring):
    """The rows are restored, the index is not: the next row goes behind the last slot."""

    def restore(self, saved: Snapshot | None, to: int) -> None:
        super().restore(saved, to)
        if saved is not None and to == saved.stop:
            self.index = len(self.rows)


class AsWideAsTheOffset(Ring):
    """The rows of a ring that wrapped are put into an array with as many places as its offset says."""

    def snapshot(self, start: int) -> Snapshot | None:
        made = super().snapshot(start)
        if made is not None:
            made._rows = Pair(*(zeros_behind(a, self.offset - self.buffered) for a in made.rows))
        return made


class ForksWhatIsGone(Ring):
    """A snapshot of a ring that wrapped is restored to any position in it."""

    def restore(self, saved: Snapshot | None, to: int) -> None:
        if saved is None or saved.gone or not 0 <= to < saved.stop or saved.stop <= self.window:
            super().restore(saved, to)
            return
        super().restore(saved, saved.stop)
        self.index = (self.index - (saved.stop - to)) % self.buffered
        self.offset = to


class KeysJoinedTwice(Growing):
    """Merged values are the joined keys."""

    def merge(self, parent: Snapshot | None, child: Snapshot | None) -> Snapshot | None:
        made = super().merge(parent, child)
        if made is not None and parent is not None and child is not None:
            keys, values = made.rows
            made._rows = Pair(keys, np.resize(keys, values.shape))
        return made


class PlaceholderOfTheOther(Growing):
    """In the place of none there come rows of zeros, as many as the other one has."""

    def merge(self, parent: Snapshot | None, child: Snapshot | None) -> Snapshot | None:
        made = super().merge(parent, child)
        if made is not None and (parent is None or child is None):
            made.stop += made.stop - made.start
            made._rows = Pair(*(zeros_behind(a, a.shape[2]) for a in made.rows))
        return made


class OneShortOfThePosition(Growing):
    """A snapshot is cut in another unit than positions: one row before."""

    def split(self, saved: Snapshot | None, at: int) -> tuple[Snapshot | None, Snapshot | None]:
        if saved is None or saved.gone or not saved.start + 1 < at < saved.stop:
            return super().split(saved, at)
        snapshot.check("split", saved, self.kind, self.config)
        return super().split(saved, at - 1)


class WindowNotCompared(Ring):
    """What a snapshot is known by leaves out the window: it is restored into a ring of another one."""

    def restore(self, saved: Snapshot | None, to: int) -> None:
        if saved is not None and not saved.gone and saved.kind == self.kind:
            saved.config = saved.config.changed(window=self.window)
        super().restore(saved, to)


class BehindWhateverIsThere(Growing):
    """Saved rows are put behind the rows there are, also where those end before the saved ones begin."""

    def restore(self, saved: Snapshot | None, to: int) -> None:
        if saved is None or saved.gone or not self.offset < saved.start <= to <= saved.stop:
            super().restore(saved, to)
            return
        snapshot.check("restore", saved, self.kind, self.config)
        self._feed(saved.rows)
        self.offset, self.queries = self.offset - (saved.stop - to), None


PLANTED = [
    planted(
        "SNAP-08",
        "ggml-org/llama.cpp/pull/5840",
        ("SNAP-12", "SNAP-15"),
        SavedUpToTheIndex,
        having(ring=SavedUpToTheIndex),
    ),
    planted(
        "SNAP-13", "waybarrios/vllm-mlx/pull/709", ("SNAP-12", "SNAP-15"), IndexNotSaved, having(ring=IndexNotSaved)
    ),
    planted(
        "RING-04",
        "ml-explore/mlx-lm/commit/509f5aef8909012e33a552c562d55048184fb25a",
        ("SNAP-12", "SNAP-15"),
        AsWideAsTheOffset,
        having(ring=AsWideAsTheOffset),
    ),
    planted(
        "MERGE-01", "mlc-ai/mlc-llm/commit/20c198f3", ("SNAP-13",), ForksWhatIsGone, having(ring=ForksWhatIsGone)
    ),
    planted(
        "MERGE-04",
        "huggingface/transformers/issues/34232",
        ("SNAP-17", "SNAP-30"),
        KeysJoinedTwice,
        having(growing=KeysJoinedTwice),
    ),
    planted(
        "MERGE-06",
        "ml-explore/mlx-lm/commit/62f38aeb51da77f595be7161ba7caa119ca5234a",
        ("SNAP-20",),
        PlaceholderOfTheOther,
        having(growing=PlaceholderOfTheOther),
    ),
    planted(
        "MEM-08",
        "sgl-project/sglang/pull/34870",
        ("SNAP-22",),
        OneShortOfThePosition,
        having(growing=OneShortOfThePosition),
    ),
    planted(
        "REUSE-02", "vllm-project/vllm/pull/3263", ("SNAP-10",), WindowNotCompared, having(ring=WindowNotCompared)
    ),
    planted(
        "REUSE-08",
        "mybigday/llama.rn/issues/396",
        ("SNAP-9",),
        BehindWhateverIsThere,
        having(growing=BehindWhateverIsThere),
    ),
]
"""Each with the clauses it breaks."""
