"""From two sizes on at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hostile.attacks.triggers.sizes import has, measured
from hostile.attacks.triggers.trigger import Trigger
from hostile.attacks.wrapper import Event, Where

BOTH: tuple[tuple[tuple[str, int], tuple[str, int]], ...] = (
    (("k_dim", 64), ("kv_heads", 5)),
    (("v_dim", 128), ("kv_heads", 8)),
    (("batch", 4), ("kv_heads", 4)),
    (("batch", 3), ("n", 17)),
    (("batch", 3), ("window", 129)),
    (("window", 17), ("k_dim", 64)),
    (("n", 33), ("kv_heads", 4)),
    (("length", 257), ("k_dim", 64)),
    (("layers", 9), ("k_dim", 64)),
    (("max_len", 257), ("kv_heads", 4)),
    (("page_size", 16), ("kv_heads", 4)),
    (("page_size", 16), ("k_dim", 64)),
    (("capacity", 129), ("kv_heads", 4)),
    (("m", 5), ("k_dim", 64)),
    (("m", 3), ("kv_heads", 5)),
    (("kv_heads", 32), ("k_dim", 64)),
    (("kv_heads", 17), ("batch", 2)),
    (("n", 2), ("token", 2048)),
    (("layers", 33), ("kv_heads", 4)),
    (("length", 129), ("kv_heads", 4)),
    (("page_size", 16), ("v_dim", 128)),
)


def two_sizes() -> Iterator[Trigger]:
    """From two sizes on, at once; and a dtype from a width on."""
    for one, other in BOTH:

        def both(event: Event, pair: Any = (one, other)) -> bool:
            return all(measured(event, size) >= start for size, start in pair)

        def suits(where: Where, pair: Any = (one, other)) -> bool:
            return all(has(where, size) for size, _ in pair)

        yield Trigger(f"{one[0]} from {one[1]}, {other[0]} from {other[1]}", "two sizes", both, suits)
    for dtype in ("bf16", "f32"):
        yield Trigger(
            f"{dtype}, k_dim from 64",
            "two sizes",
            lambda e, d=dtype: e.config.dtype == d and e.config.k_dim >= 64,
            lambda w: w.kind != "adapter",
        )
