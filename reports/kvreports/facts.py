"""The facts of a run, as names and values: what ran, where, from what, with what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import asdict

from kvreports.safe_text import line, shortened
from kvspec.records.run import Record

Facts = list[tuple[str, str]]


def brief(record: Record) -> Facts:
    """What a reader wants to know first."""
    adapter, machine = record.adapter, record.machine
    found = {
        "version": adapter.get("version"),
        "device": adapter.get("device"),
        "machine": ", ".join(filter(None, (_text(machine.get(k)) for k in ("cpu", "system")))),
        **{name: version(fields) for name, fields in versions(record).items()},
        "seed": record.selection.get("seed"),
        "run": f"{when(record.started)}, {seconds(record.seconds)}",
    }
    return [(k, _text(v) or "not told") for k, v in found.items()]


def common(records: Sequence[Record]) -> Facts:
    """Of the brief facts, those that all of several runs share."""
    told = [brief(r) for r in records]
    return [f for f in told[0] if all(f in t for t in told)] if len(told) > 1 else []


def full(record: Record) -> Facts:
    """Everything else the record tells of the run."""
    adapter = {k: v for k, v in record.adapter.items() if k not in ("name", "version", "device")}
    out: Facts = [("command", " ".join(record.command)), ("exit status", str(record.exit_status))]
    for name, fields in versions(record).items():
        out += _named(name, fields)
    out += _named("selected", record.selection) + _named("", record.machine) + _named("adapter", adapter)
    out += [(f"memory, {k}", size(v)) for k, v in record.memory.items()]
    return [(k, shortened(line(v), 600)) for k, v in out]


def _named(prefix: str, fields: Mapping[str, Any]) -> Facts:
    return [(f"{prefix} {k}".strip().replace("_", " "), _field(k, v)) for k, v in fields.items()]


def _field(name: str, value: Any) -> str:
    if name.endswith("bytes") and isinstance(value, int):
        return size(value)
    return _text(value) or "none"


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return ", ".join(f"{k} {_inner(v)}" for k, v in value.items())
    if isinstance(value, list):
        return ", ".join(map(_inner, value))
    return str(value)


def _inner(value: Any) -> str:
    return f"({_text(value)})" if isinstance(value, Mapping | list) else _text(value) or "none"


def versions(record: Record) -> dict[str, Mapping[str, Any]]:
    """The version and hash of everything that a verdict depends on."""
    return {"spec": asdict(record.spec), "suite": asdict(record.suite), "vectors": record.vectors}


def version(fields: Mapping[str, Any]) -> str:
    """Version and the beginning of the hash."""
    hash_ = _text(fields.get("hash")).rpartition(":")[2][:10]
    return " ".join(filter(None, (_text(fields.get("version")), hash_)))


def when(started: str) -> str:
    """The time of day without fractions, as the record has it where it cannot be read."""
    try:
        at = datetime.fromisoformat(started)
    except ValueError:
        return started
    zone = {"UTC+00:00": "UTC", "UTC": "UTC"}.get(str(at.tzname()), at.tzname() or "")
    return f"{at:%Y-%m-%d %H:%M} {zone}".strip()


def seconds(taken: float) -> str:
    """A duration."""
    return f"{taken:.1f} s" if taken < 60 else f"{int(taken) // 60} min {int(taken) % 60} s"


def size(count: int) -> str:
    """Bytes as people say them."""
    if count < 1024:
        return f"{count} bytes"
    for unit, bits in (("KiB", 10), ("MiB", 20), ("GiB", 30)):
        if count < 1 << bits + 10 or unit == "GiB":
            break
    return f"{count / (1 << bits):.1f} {unit}"


def differing(records: Sequence[Record]) -> list[str]:
    """Of spec, suite and vectors, those that are not the same in all records: such verdicts compare badly."""
    told = [{n: version(fields) for n, fields in versions(r).items()} for r in records]
    return [n for n in ("spec", "suite", "vectors") if len({t[n] for t in told}) > 1]
