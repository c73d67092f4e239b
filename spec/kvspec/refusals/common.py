"""The texts of refusals, shared by the reference and every adapter that wants them.

Only the words are shared. Whether to refuse is decided where the rule is enforced, by each cache for itself,
so that one mistake is not made twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from kvspec.errors import Refused
from kvspec.geometry import DTYPES, SIZES, Array, Config, Pair


def config(clause: str, kind: str, config: Config) -> Refused:
    """A config no cache may have."""
    sizes = ", ".join(f"{k}={v}" for k, v in config.to_json().items())
    return Refused(
        clause, f"{kind} cannot be opened with {sizes}: sizes must be 1 or more, dtype one of {_dtypes()}"
    )


def rows(clause: str, config: Config, keys: Array, values: Array) -> Refused:
    """Rows that are not of the cache's geometry, or as many keys as values."""
    n = keys.shape[2] if keys.ndim == 4 else "n"
    wanted = f"{config.dtype} {config.shape('k', 0)[:2]}+(n, {config.k_dim}) and (n, {config.v_dim})"
    found = f"{keys.dtype} {keys.shape} and {values.dtype} {values.shape}"
    return Refused(clause, f"append of {n} rows: expected {wanted}, found {found}")


def rewind_range(clause: str, to: int, offset: int) -> Refused:
    """A target outside the appended rows."""
    return Refused(clause, f"rewind to {to}: the target must lie in 0..{offset}")


def rewind_window(clause: str, to: int, offset: int, window: int) -> Refused:
    """A target whose window is gone."""
    return Refused(clause, f"rewind to {to}: offset {offset} is past the window of {window}, rows are overwritten")


def no_history(clause: str) -> Refused:
    """A mask without the append it belongs to."""
    return Refused(clause, "mask: there is no history; a mask follows an append")


def mask_width(clause: str, width: int, columns: int) -> Refused:
    """A mask whose columns are not the history's."""
    return Refused(
        clause, f"mask: {width} columns for a history of {columns} rows; the width must be {columns} or 1"
    )


def mask_shape(clause: str, array: Array, batch: int, queries: int) -> Refused:
    """A mask of the wrong rank, batch, query count or dtype."""
    wanted = f"bool or f32 [1 or {batch}, 1 or heads, {queries}, columns]"
    return Refused(clause, f"mask: expected {wanted}, found {array.dtype} {list(array.shape)}")


def mask_window(clause: str, size: int) -> Refused:
    """A window that not even the query is in."""
    return Refused(clause, f"mask: a window of {size}; it counts the query's own row, so it must be 1 or more")


def restore_range(clause: str, to: int, stop: int) -> Refused:
    """A target outside the saved rows."""
    return Refused(clause, f"restore to {to}: the target must lie in 0..{stop}")


def restore_gap(clause: str, offset: int, start: int) -> Refused:
    """A snapshot that begins beyond the end of the cache."""
    return Refused(
        clause, f"restore: the snapshot begins at {start}, beyond the offset {offset}; rows would be missing"
    )


def restore_window(clause: str, to: int, stop: int, window: int) -> Refused:
    """A target inside a saved ring that had gone past its window."""
    return Refused(clause, f"restore to {to}: the ring was saved at {stop}, past its window of {window}")


def geometry(clause: str, what: str) -> Refused:
    """A snapshot of another kind or geometry."""
    return Refused(clause, f"{what}: the snapshot is of another kind or geometry than this cache")


def not_meeting(clause: str, parent: tuple[int, int], child: tuple[int, int]) -> Refused:
    """Pieces that cannot be merged."""
    return Refused(clause, f"merge: [{parent[0]}, {parent[1]}) and [{child[0]}, {child[1]}) do not meet")


def same_snapshot(clause: str) -> Refused:
    """A snapshot merged with itself."""
    return Refused(clause, "merge: parent and child are the same snapshot")


def used_up(clause: str, what: str, why: str) -> Refused:
    """A snapshot that was consumed or closed."""
    return Refused(clause, f"{what}: the snapshot was {why} before")


def fit_kind(clause: str, kind: str) -> Refused:
    """A question about a kind that sets no bound on a sequence."""
    return Refused(clause, f"fit: a sequence of a {kind} has no fixed size; only a store's has")


def fit_most(clause: str, most: int) -> Refused:
    """No sequences asked for."""
    return Refused(clause, f"fit: at most {most} sequences; the bound must be 1 or more")


def overflow(clause: str, layer: int, length: int, n: int, max_len: int) -> Refused:
    """Rows that a layer has no room for."""
    return Refused(clause, f"append of {n} rows: layer {layer} holds {length}, there is room for {max_len}")


def layer(clause: str, layer: int, layers: int) -> Refused:
    """A layer that does not exist."""
    return Refused(clause, f"layer {layer}: layers are 0..{layers - 1}")


def rollback(clause: str, to: int) -> Refused:
    """A length below 0."""
    return Refused(clause, f"rollback to {to}: a length is 0 or more")


def length(clause: str, layer: int, n: int, max_len: int) -> Refused:
    """A length beyond what a layer can hold."""
    return Refused(clause, f"length {n} of layer {layer}: it must lie in 0..{max_len}")


def saved_layers(clause: str, found: int, layers: int) -> Refused:
    """A host snapshot of another number of layers."""
    return Refused(clause, f"load: {found} layers were saved, the store has {layers}")


def saved_rows(clause: str, layer: int, config: Config, pair: Pair) -> Refused:
    """Rows of a host snapshot that are not of the store's geometry, or not as many keys as values."""
    wanted = f"{config.dtype} ({config.kv_heads}, n, {config.k_dim}) and ({config.kv_heads}, n, {config.v_dim})"
    found = f"{pair.keys.dtype} {pair.keys.shape} and {pair.values.dtype} {pair.values.shape}"
    return Refused(clause, f"load: layer {layer} should be {wanted}, is {found}")


def saved_length(clause: str, layer: int, n: int, max_len: int) -> Refused:
    """A host snapshot with more rows than a layer can hold."""
    return Refused(clause, f"load: {n} rows were saved of layer {layer}, there is room for {max_len}")


def fingerprint(clause: str, position: int, max_len: int) -> Refused:
    """A position that has no row."""
    return Refused(clause, f"fingerprint of position {position}: positions are 0..{max_len - 1}")


def in_round(clause: str, what: str) -> Refused:
    """An operation on a cache that is in an open round of speculation."""
    return Refused(clause, f"{what}: the cache is in an open round; commit or abandon that first")


def twice(clause: str, first: int, second: int) -> Refused:
    """A round that is given one cache for two layers."""
    return Refused(clause, f"speculate: layers {first} and {second} are the same cache")


def cannot_speculate(clause: str, layer: int, kind: str) -> Refused:
    """A round over something that takes no drafts."""
    return Refused(clause, f"speculate: layer {layer} is a {kind}, which cannot speculate")


def uneven(clause: str, n: int, kept: list[int]) -> Refused:
    """A commit that would keep more drafts on one layer than on another."""
    numbers = ", ".join(map(str, kept))
    return Refused(clause, f"commit of {n}: would keep {numbers} drafts layer by layer, which is not one number")


def round_over(clause: str, what: str, how: str) -> Refused:
    """A round that was committed or abandoned."""
    return Refused(clause, f"{what}: the round was {how} before")


def isolated(clause: str) -> Refused:
    """A commit of a round that must not change its caches."""
    return Refused(clause, "commit: the round is isolated, it can only be abandoned")


def copy_geometry(clause: str, config: Config, keys: Array, values: Array) -> Refused:
    """Rows that are not of the buffer's geometry, or not as many keys as values."""
    wanted = f"(n, {config.kv_heads}, {config.k_dim}) and (n, {config.kv_heads}, {config.v_dim})"
    return Refused(clause, f"copy: expected rows {wanted}, found {keys.shape} and {values.shape}")


def copy_cast(clause: str, config: Config, keys: Array, values: Array) -> Refused:
    """Rows of a dtype that would have to be widened, or of two dtypes."""
    found = f"{keys.dtype} keys and {values.dtype} values"
    return Refused(clause, f"copy: a buffer of {config.dtype} takes {config.dtype} or f32 rows, found {found}")


def copy_overlap(clause: str, n: int) -> Refused:
    """A source that is memory of the buffer."""
    return Refused(clause, f"copy of {n} rows: the source overlaps the buffer")


def copy_short(clause: str, config: Config, rows: int, n: int) -> Refused:
    """A source of fewer rows than are to be copied."""
    row = config.kv_heads * config.k_dim
    needs = f"needs {n} * {row} = {n * row} elements of keys"
    return Refused(clause, f"copy of {n} rows: {needs}, the source has {rows} rows, {rows * row} elements")


def copy_before(clause: str, at: int) -> Refused:
    """A position before the first."""
    return Refused(clause, f"copy at {at}: positions are 0 or more")


def copy_beyond(clause: str, at: int, n: int, capacity: int) -> Refused:
    """More rows than there are slots from a position on."""
    return Refused(clause, f"copy of {n} rows at {at}: {at} + {n} = {at + n} is beyond the capacity of {capacity}")


def batch_size(clause: str, m: int, most: int) -> Refused:
    """A number of sequences that no batch may have."""
    return Refused(clause, f"batch of {m} sequences: from 1 to {most} are allowed")


def no_batch(clause: str, what: str) -> Refused:
    """An operation on a batch that does not exist."""
    return Refused(clause, f"{what}: the store has no batch")


def sequence(clause: str, sequence: int, m: int) -> Refused:
    """A sequence that does not exist."""
    return Refused(clause, f"sequence {sequence}: sequences are 0..{m - 1}")


def scatter(clause: str, n: int, layer: int, length: int) -> Refused:
    """More rows than a layer of the store has."""
    return Refused(clause, f"scatter of {n} rows: it must be 0..{length} of layer {layer}")


def step_rows(clause: str, config: Config, m: int, pair: Pair) -> Refused:
    """Rows that are not one for each sequence and layer."""
    shape = f"({config.layers}, {m}, {config.kv_heads}"
    wanted = f"{config.dtype} {shape}, {config.k_dim}) and {shape}, {config.v_dim})"
    found = f"{pair.keys.dtype} {pair.keys.shape} and {pair.values.dtype} {pair.values.shape}"
    return Refused(clause, f"step: expected {wanted}, found {found}")


def full(clause: str, sequence: int, max_len: int) -> Refused:
    """A sequence that has no room for one more row."""
    return Refused(clause, f"step: sequence {sequence} holds {max_len} rows, there is room for {max_len}")


def hole(clause: str, sequence: int, held: Sequence[int], length: int) -> Refused:
    """A sequence of which some layer lacks rows."""
    layer = next(i for i, n in enumerate(held) if n < length)
    return Refused(
        clause, f"step: sequence {sequence} is {length} long, but layer {layer} holds {held[layer]} of its rows"
    )


def dropped(clause: str) -> Refused:
    """Captured work whose batch is gone."""
    return Refused(clause, "replay: the memory it was captured for is no longer the batch's; capture it anew")


def captured_size(clause: str, captured: int, m: int) -> Refused:
    """Captured work of another number of sequences."""
    return Refused(clause, f"replay: it was captured for {captured} sequences, the batch has {m}")


def valid(config: Config) -> bool:
    """Tell whether every given size is 1 or more, and the dtype known."""
    sizes = (getattr(config, name) for name in SIZES)
    return config.dtype in DTYPES and all(n >= 1 for n in sizes if n is not None)


def fits(config: Config, pair: Pair) -> bool:
    """Tell whether rows have the config's geometry, with as many keys as values."""
    n = pair.keys.shape[2] if pair.keys.ndim == 4 else -1
    right = (config.shape("k", n), config.shape("v", n))
    return (pair.keys.shape, pair.values.shape) == right and {a.dtype for a in pair} == {DTYPES[config.dtype]}


def _dtypes() -> str:
    return ", ".join(DTYPES)
