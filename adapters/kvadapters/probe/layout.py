"""Where everything stands in the hidden state of a probe, and which ids its vocabulary has.

The hidden state, in order: one dimension for each content id, one constant, then a block for each layer, and one
for the convolution of each linear layer. A block has what the layer's queries saw (one dimension for each content
id), then the same from the heads that show distances, and where a probe has them from those that match keys.
Behind these come the sums of the first two, and a fingerprint.

The vocabulary, in order: the content ids, three ids of known logits (`ONE`, `HALF`, `ZERO`), then one id for each
dimension of the blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kvadapters.probe.views import CONVOLUTION, View

HEAD_DIM = 64
TOKEN, CONSTANT = 64.0, 64.0
"""What a token writes to its own dimension and to the constant's: so much that blocks hardly change the norm."""


@dataclass(frozen=True)
class Block:
    """The dimensions of one block. `sums` are those of the seen heads and of the distance heads. `match` is empty
    without heads that match keys."""

    seen: slice
    distance: slice
    match: slice
    sums: tuple[int, int]
    prints: slice


@dataclass(frozen=True)
class Layout:
    """The sizes of a probe. Each of `kv_heads` carries 64 elements of a row; `heads` query heads read them."""

    layers: tuple[View, ...]
    kv_heads: int
    ballast: float = 1.0
    """The factor at the sums: where a norm follows attention, a large one keeps this norm almost constant."""
    free_head_dim: bool = True
    """Whether a head's width is free, and not the hidden size divided by the heads."""
    match: bool = False
    """Whether each kv head has a third query head, which shows that a row's key is its token's."""

    @property
    def shown(self) -> int:
        """How often a block shows each content id."""
        return 2 + self.match

    @property
    def prints(self) -> int:
        """Elements of a fingerprint."""
        return 8 * self.kv_heads

    @property
    def ids(self) -> int:
        """Content ids: what a prompt may consist of."""
        return HEAD_DIM * self.kv_heads - self.prints - 1

    @property
    def constant(self) -> int:
        """The dimension of the constant."""
        return self.ids

    @property
    def blocks(self) -> list[tuple[int, View]]:
        """What each block shows: a layer, and a view of it."""
        linear = [(number, CONVOLUTION) for number, view in enumerate(self.layers) if view.kind == "linear"]
        return [*enumerate(self.layers), *linear]

    @property
    def used(self) -> int:
        """Dimensions in use."""
        return self.ids + 1 + len(self.blocks) * self._block

    @property
    def _block(self) -> int:
        return self.shown * self.ids + 2 + self.prints

    @property
    def hidden(self) -> int:
        """The hidden size."""
        step = HEAD_DIM if self.free_head_dim else HEAD_DIM * self.kv_heads
        if self.match and self.free_head_dim:
            step *= self.shown  # transformers demands a multiple of the heads
        return -(-self.used // step) * step

    @property
    def heads(self) -> int:
        """Query heads: two or three for each kv head. Where the hidden size decides their number, there are more,
        which do nothing."""
        return self.shown * self.kv_heads if self.free_head_dim else self.hidden // HEAD_DIM

    @property
    def group(self) -> int:
        """Query heads that share a kv head: the first shows what is seen, the second distances, the third keys."""
        return self.heads // self.kv_heads

    def block(self, number: int) -> Block:
        """Give the dimensions of a block: first come those of the layers."""
        at = self.ids + 1 + number * self._block
        seen, distance = slice(at, at + self.ids), slice(at + self.ids, at + 2 * self.ids)
        sums = at + self.shown * self.ids
        match, prints = slice(distance.stop, sums), slice(sums + 2, sums + 2 + self.prints)
        return Block(seen, distance, match, (sums, sums + 1), prints)

    @property
    def one(self) -> int:
        """The id whose logit is the constant's; `one + 1` has half of it, and `zero` has 0."""
        return self.ids

    @property
    def zero(self) -> int:
        """The id whose logit is 0."""
        return self.ids + 2

    @property
    def vocabulary(self) -> int:
        """Ids in all."""
        return self.used + 2

    def id_of(self, dimension: int) -> int:
        """Give the id that shows a dimension of a block."""
        return dimension + 2

    def words(self) -> Iterator[str]:
        """Name every id. `t7` is content, and `layer1.seen.7` shows whether layer 1 saw it."""
        yield from (f"t{t}" for t in range(self.ids))
        yield from ("<one>", "<half>", "<zero>")
        for number, (layer, view) in enumerate(self.blocks):
            name = f"layer{layer}" if number < len(self.layers) else f"layer{layer}.{view.kind}"
            sizes = {"seen": self.ids, "distance": self.ids, "match": self.ids * self.match}
            for block, size in (sizes | {"sum": 2, "print": self.prints}).items():
                yield from (f"{name}.{block}.{i}" for i in range(size))

    def norm(self, layer: int) -> float:
        """Give the root mean square of the hidden state before a layer, as far as it is the same for all tokens."""
        written = sum(below < layer for below, _ in self.blocks)
        squares = TOKEN**2 + CONSTANT**2 + written * 2 * self.ballast**2
        return float((squares / self.hidden) ** 0.5)
