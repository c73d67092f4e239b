"""The texts of refusals of bucketed caches; see `kvspec.refusals.common`."""

from __future__ import annotations

from typing import Any

from kvspec.errors import Refused
from kvspec.geometry import Config


def config(clause: str, config: Config) -> Refused:
    """A config that no bucketed cache may have."""
    sizes = ", ".join(f"{k}={v}" for k, v in config.to_json().items())
    return Refused(
        clause,
        f"bucket cannot be opened with {sizes}: sizes and bounds must be 1 or more, bounds ascending",
    )


def rows(clause: str, config: Config, n: int | str, keys: Any, values: Any) -> Refused:
    """Rows that are not of the cache's geometry, or not as many keys as values."""
    shape = f"({config.layers}, {config.batch}, {config.kv_heads}, {n}"
    wanted = f"{config.dtype} {shape}, {config.k_dim}) and {shape}, {config.v_dim})"
    return Refused(
        clause, f"expected rows {wanted}, found {keys.dtype} {keys.shape} and {values.dtype} {values.shape}"
    )


def queries(clause: str, config: Config, n: int | str, queries: Any, splits: int) -> Refused:
    """Queries that do not fit the cache, no splits, or a given output that theirs cannot be written to."""
    shape = f"({config.layers}, {config.batch}, a multiple of {config.kv_heads}, {n}, {config.k_dim})"
    found = f"{queries.dtype} {queries.shape} and {splits}"
    wanted = f"queries float32 {shape}, 1 or more splits and, if given, an output as theirs that can be written"
    return Refused(clause, f"expected {wanted}; found {found}")


def disagrees(clause: str, said: int, past: int) -> Refused:
    """A caller that counts on another length."""
    return Refused(clause, f"the caller counts on {said} past rows, the cache has {past}")


def beyond(clause: str, past: int, largest: int) -> Refused:
    """More past rows than any graph takes."""
    return Refused(clause, f"{past} past rows: the largest bound that a graph was compiled for is {largest}")


def stale(clause: str, past: int) -> Refused:
    """Handles that are older than the host's rows."""
    return Refused(clause, f"the host's {past} rows are newer than the handles; a refresh installs them")


def short(clause: str, rows: int, past: int) -> Refused:
    """A refresh from a host that lacks rows."""
    return Refused(clause, f"refresh: the host has {rows} of {past} past rows; a sync brings them there")


def after_block(clause: str, behind: int) -> Refused:
    """Handles that a block left its rows in."""
    return Refused(clause, f"{behind} rows of a block lie in the handles; unbind them first")


def cut(clause: str, to: int, past: int) -> Refused:
    """A length outside what there is."""
    return Refused(clause, f"cut to {to}: it must lie in 0..{past}")


def no_encoding(clause: str) -> Refused:
    """Cross-attention without rows."""
    return Refused(clause, "cross: no rows of an encoder were installed")
