"""Sample records: an adapter that passes, one that fails in every way, one whose run was cut short."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from msgspec import convert, to_builtins

from kvspec.contract import METERED
from kvspec.records.run import VERDICTS, Record
from reports.drawing.test_drawings import dead_steps, ring_steps, step


@dataclass(frozen=True)
class Text:
    id: str
    chapter: str
    level: str
    text: str
    reason: str


RULES = (
    ("GROW-1", "growing", "visible", "A growing cache that was never written has `offset` 0 and no `state`."),
    (
        "GROW-2",
        "growing",
        "visible",
        "`append` of n rows puts them at positions `offset .. offset+n-1`; all rows are returned in order.",
    ),
    (
        "GROW-4",
        "growing",
        "storage",
        "When `offset + n` exceeds the capacity, `ceil(n / step) * step` rows are added; see GROW-2.",
    ),
    (
        "GROW-5",
        "growing",
        "visible",
        "Rows at and beyond a rewind target are *dead*: no later operation lets them be seen again.",
    ),
    ("RING-1", "ring", "visible", "A query at position p sees `max(0, p-W+1) .. p`, itself included."),
    (
        "RING-5",
        "ring",
        "storage",
        "One row appended to a full ring overwrites the **oldest** slot; nothing else moves. See [ring buffers](https://en.wikipedia.org/wiki/Circular_buffer).",
    ),
    ("RING-10", "ring", "visible", "A rewind below the offset is refused once `offset > W`, and changes nothing."),
    ("RING-17", "ring", "visible", "A zero-row append is a true no-op on rows, offset, ring index and capacity."),
    ("MASK-2", "mask", "visible", "Causal is lower right aligned: the last query sees the last key."),
    (
        "MASK-5",
        "mask",
        "visible",
        "An explicit array is gathered into slot order; a width of 1 broadcasts, any other width is refused.",
    ),
    (
        "SNAP-1",
        "snapshot",
        "visible",
        "A snapshot is an immutable value: no later operation on any cache changes it.",
    ),
    ("SNAP-3", "snapshot", "visible", "Merging pieces that do not meet is refused and consumes nothing."),
)
REASON = "In the engine this was read from, a zero-row append reset the write index, and a later prefill lost rows."
TEXTS = {i: Text(i, p, lv, t, REASON if i in ("RING-17", "RING-5") else "") for i, p, lv, t in RULES}


def failure(verdict: str, clauses: str, steps: list[Any], message: str, **more: Any) -> Any:
    words = "ring window=4 step=4: " + "; ".join(s.do for s in steps)
    ops: list[Any] = [{"op": s.do.split()[0], "n": 1} for s in steps]
    return {
        "verdict": verdict,
        "clauses": clauses.split(),
        "implicated": ["RING-10", "RING-17"],
        "source": "explore",
        "test": "test_ring.py::test_explore",
        "oracle": "reference",
        "field": "state",
        "message": message,
        "words": words,
        "trace": {"kvtrace": 2, "kind": "ring", "config": {"window": 4, "step": 4}, "ops": ops},
        "steps": to_builtins(steps),
        "deterministic": True,
    } | more


def clause(id_: str, verdict: str = "PASS", reason: str = "", **more: Any) -> Any:
    text = TEXTS[id_]
    judged = verdict not in ("NOT_CLAIMED", "NOT_RUN", "HARNESS_ERROR")
    return {
        "id": id_,
        "chapter": text.chapter,
        "level": text.level,
        "verdict": verdict,
        "judged_at": text.level if judged else None,
        "oracle": "reference" if judged else None,
        "tests": [f"test_{text.chapter}.py::test_examples[{id_}]"] if judged else [],
        "exercised": {"example": 3, "cover": 1204, "explore": 5120} if judged else {},
        "differed": 0,
        "suspicion": 0.0,
        "reason": reason,
        "trace": None,
        "text": text.text,
    } | more


def record(name: str, clauses: list[Any], failures: list[Any] | None = None, **more: Any) -> Record:
    return convert(to_builtins(_document(name, clauses, failures) | more), Record)


def changed(sample: Record, **more: Any) -> Record:
    """The record with some fields replaced by documents."""
    return convert(to_builtins(sample) | to_builtins(more), Record)


def _document(name: str, clauses: list[Any], failures: list[Any] | None) -> dict[str, Any]:
    verdicts = [c["verdict"] for c in clauses]
    return {
        "kvrecord": 2,
        "spec": {"version": "0.1", "hash": "sha256:5d41402abc4b2a76b9719d911017c592"},
        "suite": {"version": "0.1.0", "hash": "sha256:7d793037a0760186574b0282f2f435e7"},
        "vectors": {"version": "0.1", "hash": "sha256:9b74c9897bac770ffc029102a200c5de", "count": 412},
        "started": "2025-03-14T15:09:26+00:00",
        "seconds": 41.7,
        "partial": False,
        "partial_reason": "",
        "machine": _machine(),
        "command": [name],
        "adapter": _adapter(name),
        "selection": _selection(),
        "exit_status": 1 if set(verdicts) & {"FAIL", "CRASH", "HANG", "OOM", "PROTOCOL", "XPASS"} else 0,
        "summary": {v: verdicts.count(v) for v in VERDICTS if v in verdicts},
        "clauses": clauses,
        "failures": failures or [],
        "coverage": _coverage(),
        "residency": _residency(),
        "problems": [],
        "memory": {"parent": 210 << 20, "child": 96 << 20},
    }


def _machine() -> dict[str, Any]:
    return {
        "system": "Linux 6.1",
        "cpu": "Example CPU at 2.0 GHz",
        "cores": 2,
        "memory_bytes": 8 << 30,
        "python": "3.11.7",
        "packages": {"numpy": "2.4.6", "pyopencl": "2026.1"},
    }


def _adapter(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "version": "1.2.0",
        "device": "pocl, Example CPU",
        "details": {"driver": "3.0"},
        "chapters": {
            "growing": {"level": "storage", "grows": "step", "rewind": 0},
            "ring": {"level": "visible", "grows": "free", "rewind": 2},
        },
        "dtypes": ["f32", "f16"],
        "limits": {"append": None, "batch": 4},
        "known": {},
    }


def _selection() -> dict[str, Any]:
    chapters = ["growing", "ring", "mask", "snapshot"]
    return {"chapters": chapters, "clauses": [], "traces": 200, "seed": 20250314}


def _coverage() -> dict[str, Any]:
    covered = {"append append": 7000, "append rewind": 1800, "rewind append": 1700, "append view": 12}
    return {
        "example growing": _counts(14, 61, 22, 40, {"append append": 20, "append rewind": 9}),
        "cover ring": _counts(1204, 15210, 96, 1102, covered),
        "explore ring": _counts(200, 3122, 301, 990, {"append append": 1400, "append free": 33}),
    }


def _counts(traces: int, operations: int, states: int, transitions: int, pairs: dict[str, int]) -> dict[str, Any]:
    return {
        "traces": traces,
        "operations": operations,
        "states": states,
        "transitions": transitions,
        "pairs": pairs,
    }


def _residency() -> list[dict[str, Any]]:
    return [
        _spent("append", "resident, within the capacity", 812, {"device_to_device": 1792, "launches": 1}),
        _spent("view", "", 9, {"device_to_host": 1344, "synchronisations": 2}),
    ]


def _spent(op: str, when: str, steps: int, most: dict[str, int]) -> dict[str, Any]:
    nothing = dict.fromkeys(METERED, 0)
    return {"kind": "ring", "op": op, "when": when, "steps": steps, "least": nothing, "most": nothing | most}


def passing(name: str = "reference") -> Record:
    return record(name, [clause(i) for i in TEXTS])


NAMED = [
    {
        "id": "TRIM-99/RowsComeBack",
        "says": "A rewind leaves the rows, and the next append counts them again.",
        "anomaly": "stale-tail",
        "link": "https://github.com/an/engine/pull/99",
        "clauses": ["GROW-14", "GROW-5"],
        "fits": {"traces": 19, "of": 19},
    },
    {
        "id": "stale-tail/Another",
        "says": "A rewind leaves one row too many.",
        "anomaly": "stale-tail",
        "link": "",
        "clauses": ["GROW-14"],
        "fits": {"traces": 19, "of": 19},
    },
]


def failing(name: str = "opencl-ring") -> Record:
    """Every verdict but PROTOCOL and HARNESS_ERROR."""
    said = {
        "RING-5": ("FAIL", "slot 1 holds row b; expected row f"),
        "GROW-5": ("FAIL", "slot 2 holds row c (dead, step 2); expected row e"),
        "RING-17": ("CRASH", "the adapter died: signal 11"),
        "MASK-2": ("HANG", "no answer in 30 s to: mask causal"),
        "GROW-4": ("XFAIL", "known: grows by doubling"),
        "GROW-1": ("XPASS", "known deviation did not show: state of a new cache is empty"),
        "MASK-5": ("OOM", "the adapter held 9.1 GiB, above its limit of 8 GiB"),
        "SNAP-1": ("NOT_CLAIMED", "the adapter does not declare the chapter snapshot"),
        "SNAP-3": ("NOT_CLAIMED", "the adapter does not declare the chapter snapshot"),
        "RING-10": ("NOT_RUN", "no trace reached it before the limit of 200 traces"),
    }
    clauses = [clause(i, *said.get(i, ("PASS", ""))) for i in TEXTS]
    for c in clauses:
        if c["verdict"] in ("FAIL", "CRASH"):
            c |= {"differed": 3, "suspicion": 0.87 if c["id"] == "RING-5" else 0.41}
    crash = [
        *ring_steps()[:4],
        step("append 0", "RING-17", ring_steps()[4].expected, {"result": "crash"}, "result"),
    ]
    return record(
        name,
        clauses,
        [
            failure(
                "FAIL",
                "GROW-5",
                dead_steps(),
                "slot 2, head 1 holds row c (a rejected draft, step 2); expected row e",
                words="growing step=4: append 4; rewind 2; append 1",
                source="cover",
            )
            | {"diagnosis": NAMED},
            failure("FAIL", "RING-5 RING-1", ring_steps(), "slot 1, head 0 holds row b; expected row f")
            | {"diagnosis": []},
            failure(
                "CRASH", "RING-17", crash, "the adapter died at step 5 (append 0): signal 11", deterministic=False
            ),
        ],
        problems=["the adapter wrote 3 lines to standard error: warning: falling back to the slow path"],
    )


def partial(name: str = "cuda-ring") -> Record:
    clauses = [clause(i) for i in list(TEXTS)[:6]] + [
        clause(i, "NOT_RUN", "the run stopped before it") for i in list(TEXTS)[6:]
    ]
    return record(
        name, clauses, partial=True, partial_reason="Interrupted (SIGINT) after 212 of 1,616 traces.", exit_status=3
    )


SAMPLES = (passing(), failing(), partial())
