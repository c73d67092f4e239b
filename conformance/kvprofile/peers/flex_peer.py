"""torch's flex_attention, compiled for each shape: on a GPU its flash decoding for few queries. Beside a CPU it
takes part only if asked for, since it takes seconds to compile."""

from __future__ import annotations

import importlib
from types import MappingProxyType
from typing import Any

from kvprofile.case import Case
from kvprofile.operation import Job
from kvprofile.peers.array_work import WORK
from kvprofile.peers.torch_peer import Tensors, Torch

ATTENDS = ("attention", "ring attention", "batch attention", "captured attention")


class Compiled(Tensors):
    """torch with attention by flex_attention."""

    def __init__(self) -> None:
        super().__init__()
        self.form = "flex_attention"
        self._flex = importlib.import_module("torch.nn.attention.flex_attention")
        self._attend = self.torch.compile(self._flex.flex_attention, dynamic=False)

    def attend(self, queries: Any, keys: Any, values: Any, seen: int | None = None) -> Any:
        """Attend causally: the last query sees all rows."""
        assert seen is None
        n, rows = queries.shape[2], keys.shape[2]
        mask = self._mask(n, rows, rows, 1) if n > 1 else None
        with self.torch.no_grad():
            grouped = queries.shape[1] > keys.shape[1]
            return self._attend(queries, keys, values, block_mask=mask, enable_gqa=grouped)

    def _mask(self, n: int, rows: int, seen: int, group: int) -> Any:
        """Give the blocks of rows that queries see, made once."""
        if (n, rows) not in self._masks:
            made = self._flex.create_block_mask(
                lambda b, h, query, row: row <= query + rows - n, None, None, n, rows, device=self.device
            )
            self._masks[n, rows] = made
        return self._masks[n, rows]


class Flex(Torch):
    """The peer: attention over rows in one piece."""

    name = "flex_attention"
    ways = "flex_attention in the rows' dtype, compiled for each shape"
    work = MappingProxyType({name: WORK[name] for name in ATTENDS})

    def __init__(self) -> None:
        super().__init__(Compiled())

    def job(self, case: Case, memory: int) -> Job | None:
        """Give the work of a case. What was compiled for other cases is dropped: torch keeps only a few shapes."""
        self.tensors.torch._dynamo.reset()
        return super().job(case, memory)
