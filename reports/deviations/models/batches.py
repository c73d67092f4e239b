"""What engines do otherwise with batches of unequal lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kvref.list_model.ragged import RaggedModel
from kvref.list_model.rows import Rows
from kvref.list_model.unsaid import Unsaid, may
from kvspec.errors import Refused


class ChecksNothing(RaggedModel):
    """mlx-lm's BatchKVCache: other rows, lengths, numbers of sequences and caches are taken, or raise midway."""

    def feed(self, keys: Rows, values: Rows, lengths: Sequence[int]) -> None:
        with may("ok refused"):
            super().feed(keys, values, lengths)

    def extend(self, other: Any) -> None:
        with may("ok refused"):
            super().extend(other)

    def join(self, others: Sequence[Any]) -> None:
        with may("ok refused"):
            super().join(others)


class FiltersAnything(RaggedModel):
    """mlx-lm's BatchKVCache: a number of a sequence that there is not is taken, or reads out of bounds."""

    owed = "any crash"
    """What operations end with once nothing is said of the cache: how many sequences there are is not known."""

    def filter(self, order: Sequence[int]) -> None:
        with may("ok refused crash"):
            super().filter(order)

    def extract(self, sequence: int, into: Any) -> None:
        with may("ok refused crash"):
            super().extract(sequence, into)


class TrimsBeyond(RaggedModel):
    """mlx-lm's BatchKVCache: more rows are trimmed than the shortest sequence has."""

    def trim(self, counts: Sequence[int]) -> None:
        with may("ok"):
            super().trim(counts)


class CropsUnchecked(RaggedModel):
    """transformers: sequences of a static layer are cropped to less than none, and cannot be read then."""

    def trim(self, counts: Sequence[int]) -> None:
        with may("ok refused"):
            super().trim(counts)


class ExtractsNothing(RaggedModel):
    """mlx-lm's BatchKVCache: a batch that never had a block cannot give a sequence out."""

    fed = False

    def feed(self, keys: Rows, values: Rows, lengths: Sequence[int]) -> None:
        super().feed(keys, values, lengths)
        self.fed = True

    def extend(self, other: Any) -> None:
        super().extend(other)
        self.fed = self.fed or getattr(other, "fed", False)

    def join(self, others: Sequence[Any]) -> None:
        super().join(others)
        self.fed = any(other.tokens for other in others)

    def extract(self, sequence: int, into: Any) -> None:
        if not self.fed and sequence in range(len(self.all)):
            raise Unsaid("error", kept=True)
        super().extract(sequence, into)


class BatchHalfWritten(RaggedModel):
    """mlx-lm's BatchRotatingKVCache: a block whose values do not fit has changed the keys before it raises."""

    def feed(self, keys: Rows, values: Rows, lengths: Sequence[int]) -> None:
        try:
            super().feed(keys, values, lengths)
        except (Refused, Unsaid):
            if self.window is not None:
                raise Unsaid("refused ok") from None
            raise


class HidesTheOldest(RaggedModel):
    """mlx-lm's BatchRotatingKVCache: behind columns that were written round, the mask of a block of several hides
    the first row of each sequence that is shorter than the window."""

    width = index = 0
    """The columns that are kept; and where the next one goes if they were written round, else 0."""
    hides: Sequence[bool] = ()

    def feed(self, keys: Rows, values: Rows, lengths: Sequence[int]) -> None:
        before, columns = self.sequences(), keys.shape[2]
        super().feed(keys, values, lengths)
        window = self.window or 0
        alone = columns == 1 and min(lengths) > 0
        self.hides = [not alone and 0 < self.index < window and n < window for n in before]
        if alone:
            self.index = self.index % window + 1 if window and (self.index or self.width >= window) else 0
            self.width = min(window, self.width + 1)
        else:
            self.width, self.index = min(self.width, max(0, window - 1)) + max(2, columns), 0

    def extend(self, other: Any) -> None:
        super().extend(other)
        if self.index != other.index:
            self.index = other.index = 0
        self.width = max(self.width, other.width)

    def join(self, others: Sequence[Any]) -> None:
        super().join(others)
        self.width, self.index = max(min(n, self.window or n) for n in self.sequences()), 0

    def mask(self) -> Any:
        shown = super().mask()
        for rows, hides, heads in zip(self.all, self.hides, shown, strict=True):
            for query in heads[0] if hides else ():
                if query is not None:
                    query.pop(rows[0], None)
        return shown


class SelectsAnything(RaggedModel):
    """transformers: a cache takes any order, one of nothing too, and looks at no number while it holds no rows."""

    def filter(self, order: Sequence[int]) -> None:
        with may("ok refused"):
            super().filter(order)

    def reorder(self, order: Sequence[int]) -> None:
        with may("ok refused"):
            super().reorder(order)

    def repeat(self, times: int) -> None:
        with may("ok refused"):
            super().repeat(times)


class EmptiedKeepsItsBatch(RaggedModel):
    """transformers: a cache of which all rows were cropped is left out when sequences are chosen, and then takes no
    rows of so many."""

    holds = 0
    """The sequences of the tensors that it was left with; 0 for none."""

    def feed(self, keys: Rows, values: Rows, lengths: Sequence[int]) -> None:
        if self.holds not in (0, len(self.all)) and not any(self.sequences()):
            raise Unsaid("error refused")
        super().feed(keys, values, lengths)
        self.holds = len(self.all)

    def filter(self, order: Sequence[int]) -> None:
        super().filter(order)
        self._chosen()

    def repeat(self, times: int) -> None:
        super().repeat(times)
        self._chosen()

    def _chosen(self) -> None:
        self.holds = len(self.all) if any(self.sequences()) else self.holds


class BatchWindowOfOne(RaggedModel):
    """transformers: with a window of one a batch drops no row either, and masks are too narrow for several."""

    def feed(self, keys: Rows, values: Rows, lengths: Sequence[int]) -> None:
        if self.window == 1 and keys.shape[2] > 1 and any(self.sequences()):
            raise Unsaid
        super().feed(keys, values, lengths)

    def read_sequence(self, sequence: int) -> list[int]:
        return list(self.all[sequence]) if self.window == 1 else super().read_sequence(sequence)

    def mask(self) -> Any:
        if self.window != 1 or self.last is None or self.last[1] != 1:
            return super().mask()
        return [[[dict.fromkeys(rows, 0.0)]] for rows in self.all]


class OnlyReorders(RaggedModel):
    """Sequences change places rightly, whatever is wrong where some of them are chosen."""

    def reorder(self, order: Sequence[int]) -> None:
        if len(order) != len(self.all):
            return super().reorder(order)
        return RaggedModel.filter(self, order)


class ChoosesPlainRows(OnlyReorders):
    """transformers: rows that are encoded stay as they are when sequences are chosen, which raises, or repeated."""

    def filter(self, order: Sequence[int]) -> None:
        some = self._encoded()
        super().filter(order)
        if some:
            raise Unsaid("error")

    def repeat(self, times: int) -> None:
        some = self._encoded()
        super().repeat(times)
        if some and times > 1:
            raise Unsaid("ok error")

    def _encoded(self) -> bool:
        return self.config.form is not None and any(self.sequences())


class ChoosesNoStates(OnlyReorders):
    """transformers: what a layer keeps for its convolution stays as it is when sequences are chosen or repeated."""

    def filter(self, order: Sequence[int]) -> None:
        same = list(order) == list(range(len(self.all))) or not any(self.sequences())
        super().filter(order)
        if not same:
            raise Unsaid("ok error")

    def repeat(self, times: int) -> None:
        some = any(self.sequences())
        super().repeat(times)
        if some and times > 1:
            raise Unsaid("ok error")


class CannotChoose(OnlyReorders):
    """transformers: a layer of linear attention has no call that chooses or repeats sequences; the layers before it
    have been changed."""

    def filter(self, order: Sequence[int]) -> None:
        super().filter(order)
        raise Unsaid("error")

    def repeat(self, times: int) -> None:
        super().repeat(times)
        raise Unsaid("error")
