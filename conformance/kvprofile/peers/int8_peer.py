"""torch's `_weight_int8pack_mm`, by which quantized models multiply bf16 by int8: attention over codes in place.

Keys are codes `[rows, dim]` of a head, and values lie as `[dim, rows]`, since it multiplies by rows of codes.
Scales of keys multiply scores, those of values multiply weights, in f32. Between the products numbers are bf16.

It reads 16 numbers of bf16 at once, which must begin at a multiple of 32 bytes. It does not ask for such a place,
and at another one torch 2.13 ends the process. So queries are copied to memory of torch. Values have room for as
many rows, with weights of 0 for those that there are not.
"""

from __future__ import annotations

from typing import Any

from kvprofile.case import Case
from kvprofile.operation import Job
from kvprofile.peers.correct import demand
from kvprofile.peers.host_arrays import Rows
from kvprofile.peers.torch_peer import Tensors

FORM, DTYPE, OPERATION = "int8/1", "bf16", "attention"
"""What it does: a step of one query over rows in this form, beside rows of this dtype."""

AT_ONCE = 16
"""Numbers that it reads at once."""


class Int8Products:
    """The peer."""

    name = "int8pack_mm"

    def __init__(self) -> None:
        self._tensors = Tensors()
        self._torch = self._tensors.torch
        self._multiply = self._torch._weight_int8pack_mm
        self.words = (
            f"torch {self._torch.__version__} on the CPU: _weight_int8pack_mm for each head, a softmax between"
        )

    def job(self, case: Case, memory: int) -> Job | None:
        """Write a row in its form behind the others, and attend. Raises Wrong if the output is wrong."""
        wrong = (case.operation, case.form, case.dtype, case.rows) != (OPERATION, FORM, DTYPE, 1)
        if wrong or case.model.dim % AT_ONCE:
            return None
        rows = Rows(self._tensors, case, memory)
        queries, sources, held = rows.queries().clone(), rows.caches(1, 64, 1), case.context + 1
        caches = [(keys, (self._turned(codes), scales)) for keys, (codes, scales) in rows.formed(held)]

        def do(i: int) -> Any:
            cache = caches[i % len(caches)]
            self._write(rows, cache, sources[i % len(sources)])
            return self._attend(queries, *cache)

        host, out, ((keys, kept), (values, scales)) = self._tensors.host, do(0), caches[0]
        demand(case.dtype, host(out), host(queries), host(keys * kept), host(values.mT[:, :, :held] * scales))
        return Job(do)

    def _turned(self, codes: Any) -> Any:
        """Give codes `[B, H, rows, dim]` as `[B, H, dim, rows]`, with room up to a length that it can read."""
        return self._torch.nn.functional.pad(codes, (0, 0, 0, -codes.shape[2] % AT_ONCE)).mT.contiguous()

    def _write(self, rows: Rows, cache: Any, new: tuple[Any, Any]) -> None:
        """Encode a row, and write its codes and its scales behind the context."""
        at, ((keys, key_scales), (values, value_scales)) = rows.case.context, cache
        codes, scales = self._tensors.encoded(rows.forms[0], new[0])
        keys[:, :, at : at + 1], key_scales[:, :, at : at + 1] = codes, scales
        codes, scales = self._tensors.encoded(rows.forms[1], new[1])
        values[..., at : at + 1], value_scales[:, :, at : at + 1] = codes.mT, scales

    def _attend(self, queries: Any, keys: tuple[Any, Any], values: tuple[Any, Any]) -> Any:
        """Attend, head by head."""
        (batch, heads, _, dim), (codes, scales), (turned, value_scales) = queries.shape, keys, values
        kv_heads, rows = codes.shape[1:3]
        asked, out = queries.view(batch, kv_heads, -1, dim), []
        weights = queries.new_zeros(heads // kv_heads, turned.shape[3])
        ones = {width: queries.new_ones(width) for width in (rows, turned.shape[2])}
        with self._torch.no_grad():
            for b, h in ((b, h) for b in range(batch) for h in range(kv_heads)):
                scores = self._multiply(asked[b, h], codes[b, h], ones[rows]).float()
                found = scores.mul_(scales[b, h, :, 0]).mul_(dim**-0.5).softmax(-1)
                weights[:, :rows] = found.mul_(value_scales[b, h, :, 0])
                out.append(self._multiply(weights, turned[b, h], ones[turned.shape[2]]))
        return self._torch.stack(out).view(batch, heads, 1, -1)

    def wait(self) -> None:
        """Do nothing: it is done when it returns."""
