"""Times the report page: renders adapters x clauses, and compares with json.dumps of the same records.

python tests/bench/bench_reports.py [--adapters 10] [--clauses 500] [--failures 10]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

from kvreports import json_file
from kvreports.run import html as run_html
from kvreports.run import markdown
from kvreports.run import text as run_text
from kvspec.records.run import Record

CHAPTERS = ("growing", "ring", "mask", "snapshot")
VERDICTS = ("PASS", "PASS", "PASS", "PASS", "NOT_CLAIMED", "FAIL")


def clause(number: int, adapter: int) -> dict[str, Any]:
    verdict = VERDICTS[(number * 7 + adapter) % len(VERDICTS)]
    return {
        "id": f"{CHAPTERS[number % 4][:4].upper()}-{number}",
        "chapter": CHAPTERS[number % 4],
        "level": "visible",
        "verdict": verdict,
        "judged_at": "visible",
        "oracle": "reference",
        "tests": [f"test_{number}.py::test_examples", f"test_{number}.py::test_cover"],
        "exercised": {"example": number, "cover": 40 * number, "explore": 9 * number},
        "differed": int(verdict == "FAIL"),
        "suspicion": 0.5 if verdict == "FAIL" else 0.0,
        "reason": "" if verdict == "PASS" else f"slot {number} holds row b; expected row f",
        "trace": None,
        "text": f"A rule of `n` rows that says *something* about RING-{number} and the offset it has afterwards.",
    }


def failure(number: int) -> dict[str, Any]:
    rows = [*"abcdefgh"]
    seen = {"result": "ok", "offset": 8, "buffered": 8, "capacity": 8, "slots": rows, "queries": [rows]}
    found = seen | {"slots": rows[::-1]}
    steps = [{"do": "append 1", "clauses": ["RING-1"], "expected": seen, "found": seen, "differs": []}] * 11
    steps.append({"do": "rewind 3", "clauses": ["RING-5"], "expected": seen, "found": found, "differs": ["slots"]})
    texts = dict.fromkeys(("source", "test", "oracle", "field", "message", "words"), "some words of a failure")
    lists = {"clauses": [f"RING-{number}"], "implicated": ["RING-1", "RING-5"]}
    return {"verdict": "FAIL", **lists, **texts, "trace": {"ops": []}, "steps": steps, "deterministic": True}


def record(adapter: int, clauses: int, failures: int) -> dict[str, Any]:
    return {
        "kvrecord": 2,
        "spec": {"version": "0.1", "hash": "0"},
        "suite": {"version": "0.1", "hash": "0"},
        "vectors": {"version": "0.1", "hash": "0"},
        "started": "2025-01-01T00:00:00+00:00",
        "seconds": 1.0,
        "partial": False,
        "partial_reason": "",
        "machine": {"system": "Linux", "cpu": "a CPU"},
        "command": ["engine"],
        "adapter": {"name": f"adapter-{adapter}"},
        "selection": {"seed": adapter},
        "exit_status": 1,
        "summary": {},
        "clauses": [clause(n, adapter) for n in range(clauses)],
        "failures": [failure(n) for n in range(failures)],
        "coverage": {},
        "problems": [],
        "memory": {},
    }


def best(of: Callable[[], str], times: int = 5) -> tuple[float, int]:
    """Give the seconds of the fastest of several calls, and the characters made."""
    taken, size = [], 0
    for _ in range(times):
        begun = time.perf_counter()
        size = len(of())
        taken.append(time.perf_counter() - begun)
    return min(taken), size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("adapters", 10), ("clauses", 500), ("failures", 10)):
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args()
    documents = [record(a, asked.clauses, asked.failures) for a in range(asked.adapters)]
    records = [json_file.from_json(document, Record) for document in documents]
    floor, size = best(lambda: json.dumps(documents))
    print(f"json.dumps  {floor * 1000:8.1f} ms           {size:>10,} characters")
    for name, render in (("html", run_html.render), ("markdown", markdown.render), ("text", run_text.render)):
        taken, size = best(lambda render=render: render(records, {}))  # type: ignore[misc]
        print(f"{name:<10}  {taken * 1000:8.1f} ms  {taken / floor:5.1f} x  {size:>10,} characters")


if __name__ == "__main__":
    main()
