"""Records of profiles to render: one whole, one cut short, one of an adapter without a clock."""

from __future__ import annotations

from typing import Any

from msgspec import convert, to_builtins
from msgspec.structs import replace

from kvspec.records.profile import VERSION, Profile


def spread(median: float, wide: float = 0.1) -> dict[str, float]:
    return {"median": median, "low": median * (1 - wide), "high": median * (1 + wide)}


def measurement(operation: str, ms: float, nbytes: int, limit: str | None = "copy", **more: Any) -> dict[str, Any]:
    """One case whose limit is 20 GB/s; its peers took half and twice as long."""
    rate = nbytes / ms / 1e6
    return {
        "id": f"{operation}/model/f16/4096",
        "operation": operation,
        "words": f"what {operation} is",
        "model": "Model-7B",
        "kind": "growing",
        "config": {"batch": 1, "kv_heads": 8, "k_dim": 128, "v_dim": 128, "dtype": "f16", "step": 8192},
        "context": 4096,
        "rows": 1,
        "batch": 1,
        "dtype": "f16",
        "bytes_read": nbytes // 2,
        "bytes_written": nbytes // 2,
        "flops": 0,
        "operations": 12,
        "rounds": 9,
        "device_ms": spread(ms),
        "host_ms": spread(ms / 4),
        "total_ms": spread(ms),
        "rate": spread(rate) if nbytes else None,
        "limit": limit,
        "fraction": spread(rate / 20) if limit else None,
        "metered": {"launches": 1.0, "allocations": 0.0, "host_to_device": 0.0, "device_to_host": 4096.0},
        "peers": [
            {"peer": "numpy", "ms": spread(ms / 2), "ratio": spread(2.0)},
            {"peer": "torch", "ms": spread(ms * 2), "ratio": spread(0.5)},
        ],
    } | more


def changed(sample: Profile, **more: Any) -> Profile:
    """The record with some fields replaced by documents."""
    return convert(to_builtins(sample) | to_builtins(more), Profile)


def whole() -> Profile:
    """Three operations, two limits, a peer that is missing, a case left out."""
    document = {
        "kvprofile": VERSION,
        "spec": {"version": "0.1", "hash": "5d41402abc4b"},
        "suite": {"version": "0.1.0", "hash": "7d793037a076"},
        "started": "2025-03-14T15:09:26+00:00",
        "seconds": 241.7,
        "partial": False,
        "partial_reason": "",
        "machine": {"system": "Linux 6.1", "cpu": "Example CPU", "cores": 2, "load": "0.10 over the last minute"},
        "command": ["opencl"],
        "adapter": {"name": "opencl", "version": "1.2.0", "device": "pocl, Example CPU", "chapters": {}},
        "clock": "profiling events",
        "streams": "plain kernels",
        "settings": {"rounds": 9, "memory_bytes": 1 << 28, "quick": False, "cases": None},
        "limits": [
            {"name": "read", "bytes": 1 << 28, "rounds": 9, "rate": spread(22.0)},
            {"name": "copy", "bytes": 1 << 29, "rounds": 99, "rate": spread(20.0)},
        ],
        "peers": [
            {"name": "numpy", "words": "numpy 2", "missing": ""},
            {"name": "torch", "words": "torch 2", "missing": ""},
            {"name": "index_copy_", "words": "", "missing": "it cannot be imported"},
        ],
        "measurements": [
            measurement("append", 0.004, 8192),
            measurement("append", 0.5, 4 << 20, rows=512),
            measurement("snapshot", 4.0, 32 << 20, modes=[{"ms": 3.9, "rounds": 6}, {"ms": 8.1, "rounds": 3}]),
            measurement("attention", 0.9, 16 << 20, "read"),
            measurement("rewind", 0.0002, 0, None, peers=[]),
        ],
        "skipped": [{"id": "ring append/model/f16/4096", "reason": "the adapter does not declare ring"}],
    }
    return convert(document, Profile)


def partial() -> Profile:
    return changed(whole(), partial=True, partial_reason="interrupted after 2 of 9 cases")


def unclocked() -> Profile:
    """No clock: no device times, no limits."""
    bare = {"device_ms": None, "limit": None, "fraction": None, "metered": None}
    measurements = [replace(m, **bare) for m in whole().measurements]
    return changed(whole(), clock="", streams="", limits=[], measurements=measurements)


def empty() -> Profile:
    return changed(whole(), measurements=[], limits=[], skipped=[], peers=[])


SAMPLES = {"whole": whole(), "partial": partial(), "unclocked": unclocked(), "empty": empty()}
