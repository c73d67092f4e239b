"""SGLang: the pool of keys and values, its allocator, and the table of slots, for one request.

What is appended takes slots of the allocator, or is refused where there are too few; SGLang's scheduler then takes
a request back. The allocator says how many are free, and the pool how many bytes it has. Rows are read through the
table, as attention reads them. The length is the request's own, which its caller keeps.
"""

from __future__ import annotations

from typing import Any

from kvspec.errors import CannotRun
from kvspec.geometry import Config, valid

try:
    import sglang
    import torch
    from sglang.srt.mem_cache.allocator.token import TokenToKVPoolAllocator
    from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool, ReqToTokenPool

    from kvadapters.engines.sglang.settings import settings
    from kvadapters.engines.torch import DTYPES
    from kvadapters.update import UpdateAdapter, from_update
except ImportError as e:
    raise CannotRun(f"SGLang cannot be imported ({e}); nox -s engines-sglang-keyed installs it") from e


class Request:
    """One request: its row of the table, and how many of the slots there are its own."""

    def __init__(self, config: Config) -> None:
        if not valid(config):
            raise ValueError(f"no pool of {config}")
        size, dtype = config.max_len or 0, DTYPES[config.dtype]
        shape = (config.kv_heads, config.k_dim)
        wide = {"v_head_dim": config.v_dim, "enable_alt_stream": False}
        self.rows = MHATokenToKVPool(size, 1, dtype, *shape, 1, "cpu", False, **wide)
        self.free = TokenToKVPoolAllocator(size, dtype, "cpu", self.rows, False)
        self.table = ReqToTokenPool(1, size, "cpu", enable_memory_saver=False)
        (self.row,) = self.table.alloc_rows(1)
        self.shapes = [(*shape[:1], d) for d in (config.k_dim, config.v_dim)]
        self.length = 0

    def append(self, keys: Any, values: Any) -> tuple[Any, Any]:
        """Take slots, and write rows there. Raises ValueError for rows that no projection of this model makes."""
        if not (n := keys.shape[2]):
            return self.seen()
        new = [a[0].transpose(0, 1) for a in (keys, values) if len(a) == 1]
        if [(a.dtype, *a.shape) for a in new] != [(self.rows.dtype, n, *shape) for shape in self.shapes]:
            raise ValueError(f"rows {tuple(keys.shape)} and {tuple(values.shape)} of {keys.dtype}")
        slots = self.free.alloc(n)
        if slots is None:
            raise ValueError(f"no slots for {n} rows")
        self.rows.set_kv_buffer(None, slots, *new, layer_id_override=0)
        self.table.write((self.row, slice(self.length, self.length + n)), slots.int())
        self.length += n
        return self.seen()

    def slots(self, begin: int, end: int) -> Any:
        """The slots of these positions."""
        return self.table.req_to_token[self.row, begin:end].long()

    def seen(self) -> tuple[Any, Any]:
        """All rows, through the table."""
        slots = self.slots(0, self.length)
        keys, values = (a[slots].transpose(0, 1)[None] for a in self.rows.get_kv_buffer(0))
        return keys, values

    def trim(self, n: int) -> None:
        """Give the slots of the newest rows back, as after drafts that were rejected."""
        if not 0 <= n <= self.length:
            raise ValueError(f"{n} of {self.length} rows")
        self.free.free(self.slots(self.length - n, self.length))
        self.length -= n

    def clear(self) -> None:
        """Empty the allocator, as a flush does."""
        self.free.clear()
        self.length = 0


def bounded() -> UpdateAdapter:
    """The adapter, once SGLang has its settings."""
    settings()
    return from_update(
        "sglang-bounded",
        kind="bounded",
        arrays="torch",
        make=Request,
        update=Request.append,
        accepts=lambda request, n: n <= request.free.available_size(),
        held=lambda request: int(sum(request.rows.get_kv_size_bytes())),
        trim=Request.trim,
        can_trim=lambda request, n: 0 <= n <= request.length,
        reset=Request.clear,
        also=("zero", "scribble"),
        said={"version": sglang.__version__, "details": {"torch": str(torch.__version__)}},
    )
