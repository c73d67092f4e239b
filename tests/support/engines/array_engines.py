"""Engines with arrays of their own, which numpy is copied into and out of; each judged through `from_update`."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvadapters.update import UpdateAdapter, from_update
from kvspec.geometry import Array


class Tensor:
    """An array of the engine. It shares no memory with numpy."""

    def __init__(self, elements: Any) -> None:
        self.elements = np.array(elements)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.elements.shape

    def __setitem__(self, where: Any, value: Any) -> None:
        self.elements[where] = value


class FrozenTensor(Tensor):
    """One that nothing changes."""

    def __setitem__(self, where: Any, value: Any) -> None:
        raise TypeError("tensors do not change")


class Cache:
    """A growing cache, which keeps nobody's tensors and hands out none of its own."""

    def __init__(self, config: Any) -> None:
        self.kept: list[Any] = []

    def update(self, *new: Any) -> list[Any]:
        self.kept = [self.joined(i, rows) for i, rows in enumerate(new)]
        return [type(rows)(rows.elements) for rows in self.kept]

    def joined(self, i: int, rows: Any) -> Any:
        """The old rows and the new ones, in a tensor of its own."""
        whole = [self.kept[i].elements, rows.elements] if self.kept else [rows.elements]
        return type(rows)(np.concatenate(whole, axis=2))


class KeepsWhatItIsHanded(Cache):
    """Takes the first tensor that it is handed for its own."""

    def joined(self, i: int, rows: Any) -> Any:
        return super().joined(i, rows) if self.kept else rows


class HandsOutItsOwn(Cache):
    """Returns its own tensors, and joins the next rows to them."""

    def update(self, *new: Any) -> list[Any]:
        super().update(*new)
        return self.kept


class ReusesWhatItHandedOut(HandsOutItsOwn):
    """Clears the tensors that it returned before."""

    def update(self, *new: Any) -> list[Any]:
        before = self.kept
        super().update(*new)
        for tensor in before:
            tensor.elements[...] = 0
        return self.kept


def elements(tensor: Any) -> Array:
    """Copy the elements of a tensor."""
    return np.array(tensor.elements)


def adapter(cache: type[Cache], tensor: type[Tensor] = Tensor, **said: Any) -> UpdateAdapter:
    return from_update(
        f"{cache.__name__}-{tensor.__name__}",
        kind="growing",
        make=cache,
        update=lambda made, keys, values: made.update(keys, values),
        to_engine=tensor,
        from_engine=elements,
        also=("batch", "scribble"),
        said=said,
    )


right, frozen = adapter(Cache), adapter(HandsOutItsOwn, FrozenTensor)
keeps_what_it_is_handed, hands_out_its_own = adapter(KeepsWhatItIsHanded), adapter(HandsOutItsOwn)
reuses_what_it_handed_out = adapter(ReusesWhatItHandedOut)
answers_intact = adapter(Cache, by_adapter=["intact"])
