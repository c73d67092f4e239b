"""transformers 5.23.0: an update that raises still counts, or keeps half of, its rows.

Shortest traces: ring window=1: append 1; append 1 k_dim=7 (RING-13), growing: append 1; append 1 v_dim=8
(GROW-10), bounded max_len=1: append 2 (BOUNDED-2). (1) `DynamicSlidingWindowLayer` adds to its length
before it joins the rows: the positions of all later rows are one too far, and the mask is one column too
wide. (2) `DynamicLayer` keeps the keys where the values raise: it holds more keys than values from then on.
(3) `StaticLayer` adds to its length before it writes: a chunk that does not fit raises with its first rows
written and all counted, and the next row, which would have fitted, raises too. Nothing promises that a
cache can be used after an exception; nothing says that it cannot. Status 0 if it still reproduces.
"""

import sys
from contextlib import suppress

import torch
from float64 import report
from transformers import DynamicCache, MistralConfig, StaticCache


def row(count=1, dim=1):
    """Rows of ones, `[1, 1, count, dim]`."""
    return torch.ones(1, 1, count, dim)


def model(window):
    """The config of a model of one layer."""
    return MistralConfig(num_hidden_layers=1, sliding_window=window)


sliding = DynamicCache(config=model(4))
sliding.update(row(2), row(2), 0)
with suppress(RuntimeError):
    sliding.update(row(dim=3), row(dim=3), 0)
columns, _ = sliding.get_mask_sizes(1, 0)
keys, _ = sliding.update(row(), row(), 0)

growing = DynamicCache(config=model(None))
growing.update(row(2), row(2), 0)
with suppress(RuntimeError):
    growing.update(row(), row(dim=3), 0)
layer = growing.layers[0]
halves = layer.keys.shape[2], layer.values.shape[2]

static = StaticCache(config=model(None), max_cache_len=4)
static.update(row(3), row(3), 0)
for count in (2, 1):
    with suppress(IndexError):
        static.update(row(count), row(count), 0)
counted = int(static.get_seq_length()), float(static.layers[0].keys.sum())

message = (
    f"(1) {columns} columns for {keys.shape[2]} rows, length {sliding.get_seq_length()}; "
    f"(2) {halves[0]} keys, {halves[1]} values; (3) length {counted[0]} of 4, {counted[1]:.0f} rows written"
)
sys.exit(report((columns, keys.shape[2], halves, counted) == (4, 3, (3, 2), (6, 4.0)), message))
