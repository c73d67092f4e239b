"""The texts of refusals, shared by the reference and every adapter that wants them.

Only the words are shared. Whether to refuse is decided where the rule is enforced, by each cache for itself,
so that one mistake is not made twice.
"""

from __future__ import annotations

from kvspec.contract import Pair
from kvspec.errors import Refused
from kvspec.geometry import DTYPES, SIZES, Array, Config


def config(clause: str, profile: str, config: Config) -> Refused:
    """A config no cache may have."""
    sizes = ", ".join(f"{k}={v}" for k, v in config.to_json().items())
    return Refused(
        clause, f"{profile} cannot be opened with {sizes}: sizes must be 1 or more, dtype one of {_dtypes()}"
    )


def rows(clause: str, config: Config, keys: Array, values: Array) -> Refused:
    """Rows that are not of the cache's geometry, or as many keys as values."""
    n = keys.shape[2] if keys.ndim == 4 else "n"
    wanted = f"{config.dtype} {config.shape('k', 0)[:2]}+(n, {config.k_dim}) and (n, {config.v_dim})"
    found = f"{keys.dtype} {keys.shape} and {values.dtype} {values.shape}"
    return Refused(clause, f"append of {n} rows: expected {wanted}, found {found}")


def rewind_range(clause: str, to: int, offset: int) -> Refused:
    """A target outside what was appended."""
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


def restore_range(clause: str, to: int, stop: int) -> Refused:
    """A target outside what was saved."""
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


def valid(config: Config) -> bool:
    """Whether every size that is given is 1 or more, and the dtype known."""
    sizes = (getattr(config, name) for name in SIZES)
    return config.dtype in DTYPES and all(n >= 1 for n in sizes if n is not None)


def fits(config: Config, pair: Pair) -> bool:
    """Whether rows are of the config's geometry, as many keys as values."""
    n = pair.keys.shape[2] if pair.keys.ndim == 4 else -1
    right = (config.shape("k", n), config.shape("v", n))
    return (pair.keys.shape, pair.values.shape) == right and {a.dtype for a in pair} == {DTYPES[config.dtype]}


def _dtypes() -> str:
    return ", ".join(DTYPES)
