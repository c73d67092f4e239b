"""torch's flex_attention, compiled for each shape of one query. That takes seconds, so it takes part only if asked
for."""

from __future__ import annotations

import importlib
from types import MappingProxyType
from typing import Any

from kvconform.profiling.case import Case
from kvconform.profiling.operation import Job
from kvconform.profiling.peers.array_work import WORK
from kvconform.profiling.peers.correct import Wrong
from kvconform.profiling.peers.torch_peer import Tensors, Torch

ATTENDS = ("attention", "ring attention", "batch attention", "captured attention")


class Compiled(Tensors):
    """torch with attention by flex_attention."""

    def __init__(self) -> None:
        super().__init__()
        self.form = "flex_attention"
        flex = importlib.import_module("torch.nn.attention.flex_attention").flex_attention
        self._attend = self.torch.compile(flex, dynamic=False)

    def attend(self, queries: Any, keys: Any, values: Any, seen: int | None = None) -> Any:
        """Attend with one query, which sees all rows. Raises Wrong if it does not compile here."""
        assert queries.shape[2] == 1 and seen is None
        try:
            with self.torch.no_grad():
                return self._attend(queries, keys, values, enable_gqa=queries.shape[1] > keys.shape[1])
        except self.torch._dynamo.exc.TorchDynamoException as e:
            raise Wrong(f"flex_attention does not compile here: {str(e).splitlines()[0]:.200}") from e


class Flex(Torch):
    """The peer: the attention of one query."""

    name = "flex_attention"
    ways = "flex_attention in the rows' dtype, compiled for each shape"
    work = MappingProxyType({name: WORK[name] for name in ATTENDS})

    def __init__(self) -> None:
        super().__init__(Compiled())

    def job(self, case: Case, memory: int) -> Job | None:
        """Give the work of a case. What was compiled for other cases is dropped: torch keeps only a few shapes."""
        if case.rows > 1:
            return None
        self.tensors.torch._dynamo.reset()
        return super().job(case, memory)
