"""Hugging Face transformers: a padded batch, of which outputs alone are shown, as a model's logits show it.

The caller keeps one array, the attention mask `[sequences, columns]` that a model's `forward` takes: 1 where a
column is a row. Everything else is what a model does. `create_causal_mask` makes the mask of all queries of it, the
cache is updated with the padded block, and `sdpa` attends. Columns of padding stay in the cache, also between rows.

A trim clears columns of the caller's mask, since a crop takes the same columns of all sequences. Windows are not
claimed, since transformers counts them in columns. Nor are sequences of another batch, or those that are taken out:
there are no calls. Padding holds numbers, as embeddings do. Rows and queries are those of a model's projections, so
the adapter refuses rows of other sizes. Nothing refuses queries of other sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from kvadapters.engines.transformers import caches as one
from kvadapters.one_kind import OneKind
from kvspec.contract import Pair
from kvspec.errors import CannotRun, Unsupported
from kvspec.geometry import Array, Config, fits, valid

try:
    import torch
    import transformers
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    from transformers.masking_utils import create_causal_mask

    from kvadapters.arrays.torch import from_engine, to_engine
except ImportError as e:
    raise CannotRun(f"torch cannot be imported ({e}); pip install 'kvconform[transformers]'") from e

SHOWN = (
    *("feed", "attendblock", "left", "right", "uneven", "zero", "wide"),
    *("each", "trim", "filter", "reorder", "repeat"),
)
"""Claim no rows, positions or masks: a model hands them out to nobody."""


class PaddedBatch:
    """A cache, and the attention mask that its caller keeps."""

    def __init__(self, config: Config) -> None:
        if config.window is not None:
            raise Unsupported("transformers counts windows in columns")
        if not valid(config):
            raise ValueError("no model has such sizes")
        self.config, self.made = config, one.dynamic(config)
        self.rows = np.zeros((config.batch, 0), np.int64)

    def feed(self, keys: Array, values: Array, lengths: Sequence[int]) -> None:
        """What a layer of a model keeps of a block."""
        self._updated(keys, values, lengths)

    def attend_block(self, queries: Array, keys: Array, values: Array, lengths: Sequence[int]) -> Array:
        """What a layer of a model does with a block."""
        batch, heads, n, _ = queries.shape
        mask, rows = self._updated(keys, values, lengths)
        if not n:
            return np.zeros((batch, heads, 0, self.config.v_dim), np.float32)
        module = SimpleNamespace(num_key_value_groups=heads // keys.shape[1], training=False, is_causal=True)
        states = (to_engine(queries), *(a.float() for a in rows))
        found, _ = sdpa_attention_forward(module, *states, mask, scaling=queries.shape[3] ** -0.5)
        return np.asarray(from_engine(found.transpose(1, 2)))

    def _updated(self, keys: Array, values: Array, lengths: Sequence[int]) -> tuple[Any, Any]:
        """The mask of a block's queries, and the rows of the cache behind it. Raises ValueError for lengths that
        are none of this block: the mask is the caller's."""
        sequences, columns = len(self.rows), keys.shape[2]
        if not fits(self.config.changed(batch=sequences), Pair(keys, values)):
            raise ValueError("a model's projections give rows of one geometry")
        if len(lengths) != sequences or not set(lengths) <= set(range(columns + 1)):
            raise ValueError(f"lengths {lengths} of a block of {columns} columns")
        place, own = np.arange(columns), np.array(lengths)[:, None]
        owned = place >= columns - own if self.config.padding == "left" else place < own
        whole = np.concatenate([self.rows, owned.astype(np.int64)], axis=1)
        mask = self._mask(whole, columns) if columns else None
        rows = self.made.cache.update(to_engine(keys), to_engine(values), 0)
        self.rows = whole
        return mask, rows

    def _mask(self, whole: Array, columns: int) -> Any:
        """The mask that a model makes before its layers."""
        asked = transformers.LlamaConfig(attn_implementation="sdpa", num_hidden_layers=1)
        positions = (whole.cumsum(1) - 1).clip(0)[:, whole.shape[1] - columns :]
        return create_causal_mask(
            config=asked,
            inputs_embeds=torch.zeros(len(whole), columns, 1),
            attention_mask=torch.from_numpy(whole),
            past_key_values=self.made.cache,
            position_ids=torch.from_numpy(positions),
        )

    def trim(self, counts: Sequence[int]) -> None:
        """Hide the newest rows of each sequence from all later queries."""
        if len(counts) != len(self.rows) or any(
            c < 0 or c > n for c, n in zip(counts, self.sequences(), strict=True)
        ):
            raise ValueError(f"counts {counts} of sequences of {self.sequences()}")
        behind = self.rows[:, ::-1].cumsum(1)[:, ::-1]
        self.rows = self.rows * (behind > np.array(counts)[:, None])

    def filter(self, order: Sequence[int]) -> None:
        """Keep these sequences, in this order."""
        self._rearrange(order, lambda: self.made.cache.batch_select_indices(torch.tensor(list(order))))

    def reorder(self, order: Sequence[int]) -> None:
        """Put the beams in another order."""
        if len(order) != len(self.rows):
            raise ValueError(f"{len(order)} beams of {len(self.rows)}")
        self._rearrange(order, lambda: self.made.cache.reorder_cache(torch.tensor(list(order))))

    def repeat(self, times: int) -> None:
        """Repeat each sequence, side by side."""
        order = np.arange(len(self.rows)).repeat(times).tolist()
        self._rearrange(order, lambda: self.made.cache.batch_repeat_interleave(times))

    def _rearrange(self, order: Sequence[int], do: Any) -> None:
        """Rearrange the cache and its caller's mask."""
        if not order or not set(order) <= set(range(len(self.rows))):
            raise ValueError(f"sequences {list(order)} of {len(self.rows)}")
        if self.rows.shape[1]:
            do()
        self.rows = self.rows[list(order)]

    def sequences(self) -> list[int]:
        """How many columns are rows."""
        return [int(n) for n in self.rows.sum(1)]


_SAID = {name: said for name, said in one.growing.describe().items() if name not in ("name", "chapters")}

padded = OneKind("transformers-padded", "ragged", PaddedBatch, {"with": [*SHOWN]}, _SAID)
