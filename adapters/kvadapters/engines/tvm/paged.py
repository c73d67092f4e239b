"""Apache TVM: the paged cache of its runtime, which MLC LLM serves with, on a CPU.

A sequence is added, forked, popped and removed by the calls of the virtual machine. Its rows are read by the call
for debugging. The kernels that write, copy and read rows are TVM's, built by LLVM for pages of the pool's size.
Attention does nothing here, because nobody looks at its output. One forward pass is of one sequence. Numbers of
sequences are the caller's. The reserve for a window, which TVM adds to the pages, is not asked for.
"""

from __future__ import annotations

from functools import cache as cached
from typing import Any

import numpy as np

from kvadapters.engines.limits import check_rows, one_of, one_width
from kvadapters.one_kind import OneKind
from kvadapters.pools import Pool
from kvspec.contract import Pair
from kvspec.errors import CannotRun
from kvspec.geometry import DTYPES, Array, Config

try:
    import tvm
    from tvm.relax.frontend.nn.llm import kv_cache as kernels
    from tvm_ffi import Shape, convert

    from kvadapters.engines.tvm.runtime import FLOATS, call, forward, tensor
except ImportError as e:
    raise CannotRun(f"TVM cannot be imported ({e}); pip install 'kvconform[tvm]'") from e


@cached
def built(heads: int, dim: int, dtype: str, size: int, layers: int) -> dict[str, Any]:
    """Build the kernels once."""
    made = {
        "append": kernels._kv_cache_transpose_append(heads, dim, dtype, page_size=size),
        "show": kernels._kv_cache_debug_get_kv(layers, heads, dim, dtype),
        "page": kernels._copy_single_page_cpu(heads, size, dim, dtype),
        "compact": kernels._compact_kv_copy_cpu(heads, dim, dtype, page_size=size),
        "split": kernels.llama_rope_with_position_map(1e4, 1.0, dim, heads, heads, dtype, {}),
    }
    module = tvm.IRModule({name: one.with_attr("global_symbol", name) for name, one in made.items()})
    library = tvm.tirx.build(module, target=tvm.target.Target("llvm"))
    return {name: library[name] for name in made}


class Paged(Pool):
    """A cache of one layer, or of those of a store. A sequence is known by the number that its caller gave it."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        dim, dtype = one_width(config), FLOATS[one_of(config, FLOATS)]
        self.layers = config.layers or 1
        self.kernels = built(config.kv_heads, dim, dtype, self.size, self.layers)
        self.cache = self._made(self.pages, self.size)

    def _made(self, pages: int, size: int) -> Any:
        """TVM adds a page to those that tokens need."""
        heads, dim = self.config.kv_heads, self.config.k_dim
        done, own = convert(lambda *_: None), self.kernels  # nobody looks at what attention gives
        attend = [["tirx", done] for _ in range(7)]
        room = Shape([8, (pages - 1) * size, pages * size, size, 0])
        like = tensor(np.zeros((), DTYPES[self.config.dtype]))
        layers, each = Shape([0, self.layers]), Shape([0] * self.layers)
        return call("paged_attention_kv_cache_create")(
            *(room, layers, heads, heads, dim, dim, each, False, 0, 1.0, 1e4, None, like),
            *(own["append"], None, *attend, [], [done], own["split"], own["page"], own["show"], own["compact"]),
        )

    def admit(self) -> int:
        """Add a sequence."""
        call("kv_state_add_sequence")(self.cache, self.unused())
        return self.added(self.unused())

    def fork(self, sequence: int, n: int) -> int:
        """Fork one at a position. The word for the end, -1, is none of this adapter's."""
        if n < 0:
            raise ValueError(f"a fork of {n} rows")
        call("kv_state_fork_sequence")(self.cache, sequence, self.unused(), n)
        return self.added(self.unused())

    def append(self, keys: Array, values: Array, sequence: int = 0) -> None:
        """Do a forward pass, of some rows. Raises ValueError for rows that no projection of this model makes."""
        if keys.shape[2]:
            check_rows(self.config, keys, values)
            forward(self.cache, [sequence], keys.swapaxes(1, 2), values.swapaxes(1, 2))

    def truncate(self, sequence: int, to: int) -> None:
        """Pop rows."""
        call("kv_state_popn")(self.cache, sequence, self.length(sequence) - to)

    def drop(self, sequence: int) -> None:
        """Remove a sequence."""
        call("kv_state_remove_sequence")(self.cache, sequence)
        del self.all[sequence]

    def length(self, of: Any) -> int:
        """What TVM says."""
        return int(call("attention_kv_cache_get_sequence_length")(self.cache, of))

    def read_sequence(self, sequence: int, layer: int = 0) -> Pair:
        """What the call for debugging shows. It is not asked for no rows."""
        n, heads, dim = self.length(sequence), self.config.kv_heads, self.config.k_dim
        found = [tensor(np.zeros((self.layers, n, heads, dim), DTYPES[self.config.dtype])) for _ in "kv"]
        if n:
            call("attention_kv_cache_debug_get_kv")(self.cache, sequence, 0, n, *found)
        return Pair(*(a.numpy()[layer].swapaxes(0, 1) for a in found))

    def free_pages(self) -> int:
        """The pages that TVM says it can take."""
        return int(call("attention_kv_cache_get_num_available_pages")(self.cache))


CLAIM = {"without": ["gather", "peek", "scribble"], "part": "copied"}
SAID = {"version": tvm.__version__, "dtypes": [*FLOATS], "limits": {"dims": {"equal": True}}}
paged = OneKind("tvm-paged", "page", Paged, CLAIM, {**SAID, "by_adapter": ["sequence"]})
