"""The facts of a run, as names and values: the adapter, the machine, the versions and the settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import asdict

from kvreports.safe_text import line, shortened
from kvreports.units import seconds, size, when
from kvspec.records.run import Record

Facts = list[tuple[str, str]]


def brief(record: Record) -> Facts:
    """The facts a reader wants first."""
    adapter, machine = record.adapter, record.machine
    values = {
        "version": adapter.get("version"),
        "device": adapter.get("device"),
        "machine": ", ".join(filter(None, (_text(machine.get(k)) for k in ("cpu", "system")))),
        **_versions(record),
        "seed": record.selection.get("seed"),
        "run": f"{when(record.started)}, {seconds(record.seconds)}",
    }
    return [(k, _text(v) or "unknown") for k, v in values.items()]


def common(records: Sequence[Record]) -> Facts:
    """The brief facts that several runs have in common."""
    each = [brief(r) for r in records]
    return [fact for fact in each[0] if all(fact in other for other in each)] if len(each) > 1 else []


def full(record: Record) -> Facts:
    """Everything else that the record knows about the run."""
    adapter = {k: v for k, v in record.adapter.items() if k not in ("name", "version", "device")}
    facts: Facts = [("command", " ".join(record.command)), ("exit status", str(record.exit_status))]
    for name, fields in _sources(record).items():
        facts += _named(name, fields)
    facts += _named("selected", record.selection) + _named("", record.machine) + _named("adapter", adapter)
    facts += [(f"memory, {k}", size(v)) for k, v in record.memory.items()]
    return [(k, shortened(line(v), 600)) for k, v in facts]


def differing(records: Sequence[Record]) -> list[str]:
    """Which of spec, suite and vectors differ between records: their verdicts cannot be compared well."""
    versions = [_versions(r) for r in records]
    return [name for name in ("spec", "suite", "vectors") if len({v[name] for v in versions}) > 1]


def _sources(record: Record) -> dict[str, Mapping[str, Any]]:
    """The sources that verdicts depend on, apart from the adapter, each with its version and hash."""
    return {"spec": asdict(record.spec), "suite": asdict(record.suite), "vectors": record.vectors}


def _versions(record: Record) -> dict[str, str]:
    """Version and the beginning of the hash of each source."""
    return {name: _version(fields) for name, fields in _sources(record).items()}


def _version(fields: Mapping[str, Any]) -> str:
    hash_ = _text(fields.get("hash")).rpartition(":")[2][:10]
    return " ".join(filter(None, (_text(fields.get("version")), hash_)))


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
