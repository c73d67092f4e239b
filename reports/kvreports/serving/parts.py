"""What all forms of a serving engine's record say."""

from __future__ import annotations

from kvspec.records.serving import SIZES, ServingRecord

HEAD = ("clause", "verdict", "requests", "why")


def headline(record: ServingRecord) -> str:
    """The result in one sentence."""
    held, asked = holding(record)
    result = {0: "Conforms", 1: "Does not conform", 3: "Not all was exercised"}.get(record.exit_status, "Ended")
    interrupted = ", interrupted" if record.partial else ""
    return f"{result}: {held} of {asked} clauses of SERVE hold{interrupted}"


def holding(record: ServingRecord) -> tuple[int, int]:
    """How many clauses hold, of how many that the engine can be asked about."""
    verdicts = [clause.verdict for clause in record.clauses]
    return sum(v in ("PASS", "PARTLY_OBSERVED") for v in verdicts), sum(v != "NOT_CLAIMED" for v in verdicts)


def facts(record: ServingRecord) -> list[tuple[str, str]]:
    """The engine, the probe, and what was asked and counted."""
    engine, probe, precision = record.engine, record.probe, record.precision
    sizes = [f"{name} {engine.get(name)}" for name in SIZES if engine.get(name)]
    reading = max(0.0, record.seconds - record.engine_seconds)
    return [
        ("engine", " ".join(filter(None, (engine.name, engine.version, engine.flags)))),
        ("declares", ", ".join([*sizes, *engine.can]) or "nothing"),
        ("answers hold", {"all": "all logprobs", "top": "the top logprobs"}.get(engine.tells, "tokens alone")),
        ("probe", f"{probe.architecture}, layers {probe.layers}"),
        ("precision", " ".join(filter(None, (precision.dtype, precision.rows or "")))),
        ("asked", ", ".join(f"{n} {name}" for name, n in record.asked.items())),
        ("the engine counts", ", ".join(f"{n} {name}" for name, n in record.counted.items()) or "nothing"),
        ("seconds", f"{record.engine_seconds:.1f} waited for the engine, {reading:.1f} for reading"),
        ("seed", str(record.seed)),
        ("wrong", f"{record.wrong_histories} histories"),
    ]


def rows(record: ServingRecord) -> list[tuple[str, str, str, str]]:
    """A row for each clause."""
    return [(c.id, c.verdict, str(c.requests), c.why) for c in record.clauses]
