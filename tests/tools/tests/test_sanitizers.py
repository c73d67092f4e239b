"""The sanitizers: what their logs say, what a session makes of it, and one planted bug of each tool."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from kvgpu.adapters import CudaCPU
from kvgpu.runtimes import cpp_compiler
from kvgpu.runtimes.cuda_cpu import CudaCPURuntime
from kvspec.contract import description
from support.slow import one_in
from tools.sanitizers import __main__ as sanitizers
from tools.sanitizers import checks, findings, probes, steps, warps, watched_process
from tools.sanitizers.checks import CHECKS, TOOLS
from tools.sanitizers.findings import DIFFERENCE, REFUSAL, Report
from tools.sanitizers.planted import Planted
from tools.sanitizers.planted_bugs import BUGS

ASAN = """
==7==WARNING: ASan doesn't fully support makecontext/swapcontext functions
=================================================================
==7==ERROR: AddressSanitizer: {error} on address 0x606000001000 at pc 0x7f bp 0x7f sp 0x7f
{access} of size 4 at 0x606000001000 thread T0
    #0 0x7f00 in memcpy (libasan.so+0x1)
    #1 0x7f01 in move4 /tmp/kvconform-cxx-0/tmp1/kernels.cu:17
    #2 0x7f02 in call_move4 /tmp/kvconform-cxx-0/tmp1/program.cpp:9

0x606000001000 is located 8 bytes {where} 64-byte region [0x606000000fc0,0x606000001000)
"""


@pytest.mark.parametrize(
    ("error", "access", "where", "kind"),
    [
        ("heap-buffer-overflow", "WRITE", "to the right of", "write past the end"),
        ("heap-buffer-overflow", "READ", "after", "read past the end"),
        ("heap-buffer-overflow", "WRITE", "to the left of", "write before the beginning"),
        ("heap-buffer-overflow", "READ", "before", "read before the beginning"),
        ("heap-use-after-free", "READ", "inside of", "read after release"),
        ("global-buffer-overflow", "WRITE", "to the right of", "write outside shared memory"),
        ("stack-overflow", "WRITE", "inside of", "stack-overflow"),
    ],
)
def test_address_sanitizer_is_read(error: str, access: str, where: str, kind: str) -> None:
    log = ASAN.format(error=error, access=access, where=where)
    assert list(findings.asan(log)) == [Report(kind, "move4", 17)]


def test_a_warning_is_no_report() -> None:
    assert list(findings.asan(ASAN.split("=====")[0])) == []
    assert list(findings.tsan("")) == list(findings.oclgrind("")) == []


TSAN = """==================
WARNING: ThreadSanitizer: data race (pid=5)
  Write of size 4 at 0x7b10 by thread T3:
    #0 move4 /tmp/x/kernels.cu:17 (kernels.so+0x6b)

  Previous write of size 4 at 0x7b10 by thread T2:
    #0 move4 /tmp/x/kernels.cu:18 (kernels.so+0x6c)

  Thread T3 'thread 1,0,0 of block {other}' (tid=0, running) created by main thread at:
    #0 launch /tmp/x/scheduler.cpp:24 (kernels.so+0x35)

  Thread T2 'thread 0,0,0 of block 0,0,0' (tid=0, finished) created by main thread at:
    #0 launch /tmp/x/scheduler.cpp:24 (kernels.so+0x35)

SUMMARY: ThreadSanitizer: data race /tmp/x/kernels.cu:17 in move4
"""


def test_thread_sanitizer_is_read() -> None:
    within, between = (next(findings.tsan(TSAN.format(other=o))) for o in ("0,0,0", "0,1,0"))
    assert within == Report("race within a block", "move4", 17, "thread 1,0,0 and thread 0,0,0 of block 0,0,0")
    assert between == Report("race between blocks", "move4", 17, "block 0,1,0 and block 0,0,0")


ACCESS = "\n{head}\n\tKernel: move4\n\tEntity: Global(0,0,0) Local(0,0,0) Group(0,0,0)\n\tAt line 17 of input.cl:\n"
RACE = (
    "\n{head}\n\tKernel: move4\n\n\tFirst entity:  Global(1,0,0) Local(1,0,0) Group(0,0,0)\n\tAt line 17 of "
    "input.cl:\n\n\tSecond entity: Global(0,0,0) Local(0,0,0) Group({other},0,0)\n\tAt line 18 of input.cl:\n"
)


@pytest.mark.parametrize(
    ("log", "kind"),
    [
        (ACCESS.format(head="Invalid read of size 4 at global memory address 0x1"), "read outside global memory"),
        (ACCESS.format(head="Invalid write of size 4 at local memory address 0x1"), "write outside local memory"),
        (ACCESS.format(head="Uninitialized value written to global memory address 0x2"), "uninitialised value"),
        (ACCESS.format(head="Controlflow depends on uninitialized value"), "uninitialised value"),
        (ACCESS.format(head="Work-group divergence detected (barrier)"), "barrier divergence"),
        (
            RACE.format(head="Write-write data race at global memory address 0x1", other=1),
            "race between groups in global memory",
        ),
        (
            RACE.format(head="Read-write data race at local memory address 0x1", other=0),
            "race within a group in local memory",
        ),
        (ACCESS.format(head="Something nobody has thought of"), "Something nobody has thought of"),
    ],
)
def test_oclgrind_is_read(log: str, kind: str) -> None:
    assert list(findings.oclgrind(log + log)) == [Report(kind, "move4", 17)] * 2


def test_a_report_names_kernel_line_and_text() -> None:
    assert Report("race", "move4", 2, "so").named("one\n  two\n") == "race in move4, line 2: two (so)"
    assert findings.from_json(Report("race", "move4", 2).to_json()) == Report("race", "move4", 2)


@pytest.mark.parametrize("name", CHECKS)
def test_every_bug_has_a_place_in_the_text(name: str) -> None:
    text = CHECKS[name].text
    assert all(bug.plant(text) != text or not bug.old for bug in BUGS[name])
    with pytest.raises(AssertionError, match="plant it elsewhere"):
        next(bug for bug in BUGS[name] if bug.old).plant("nothing")


def test_every_tool_has_checks_and_every_check_has_bugs() -> None:
    assert {c for tool in TOOLS.values() for c in tool} == set(CHECKS) == set(BUGS)
    assert {name for name, check in CHECKS.items() if not check.cases} == set(watched_process.TRACES)


@pytest.mark.parametrize(
    ("check", "kind"),
    one_in(
        4,
        [
            ("asan", "read past the end"),
            ("asan", "read after release"),
            ("tsan", "race between blocks"),
            ("tsan-warps", "race within a block"),
            ("tsan-warps", "race between blocks"),
            ("asan-warps", "write outside shared memory"),
            ("asan-prefill", "write past the end"),
            ("tsan-prefill", "race within a block"),
            ("asan-step", "read past the end"),
            ("tsan-step", "race between blocks"),
            ("asan-copies", "write past the end"),
            ("tsan-wide", "race within a block"),
            ("oclgrind", "race within a group in local memory"),
            ("oclgrind-uninitialised", "uninitialised value"),
        ],
    ),
)
def test_a_planted_bug_is_caught(check: str, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    bug = next(bug for bug in reversed(BUGS[check]) if bug.kind == kind)
    assert sanitizers._planted(CHECKS[check], bug) == 0
    assert f"{check}: caught: {bug.name}" in capsys.readouterr().out


def test_a_bug_that_is_not_there_is_not_caught(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(sanitizers, "watch", lambda *_: sanitizers.Watched([Report("another kind")], "1 traces"))
    monkeypatch.setattr(sanitizers, "BUGS", {name: BUGS[name][:1] for name in TOOLS["asan"]})
    assert sanitizers.main(["asan", "--planted"]) == 1
    assert "asan: NOT CAUGHT" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("found", "status"),
    [
        (sanitizers.Watched([], "8 traces, 9 operations"), 0),
        (sanitizers.Watched([Report("race")], "8 traces, 9 operations"), 1),
        (sanitizers.Watched([], "0 traces, 0 operations"), 3),
        (sanitizers.Watched([], "", "Segmentation fault"), 3),
    ],
)
def test_the_exit_status_says_what_came_of_it(
    found: sanitizers.Watched, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sanitizers, "watch", lambda *_, **__: found)
    assert sanitizers.main(["asan"]) == status


@pytest.mark.parametrize(("tool", "missing"), [("asan", "libasan"), ("tsan", "setarch"), ("oclgrind", "Oclgrind")])
def test_a_tool_that_is_missing_is_named(
    tool: str, missing: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    cpp_compiler.find()  # it is asked for first
    which = checks.shutil.which
    monkeypatch.setattr(checks.shutil, "which", lambda name: None if name == "setarch" else which(name))
    monkeypatch.setattr(checks, "find_spec", lambda name: None)
    if tool == "asan":
        monkeypatch.setattr(checks, "_gcc", lambda *_: checks._library("libasan-of-nobody.so"))
    assert sanitizers.main([tool]) == 4
    assert f"{tool} cannot run here" in (told := capsys.readouterr().err) and missing in told


def test_without_a_compiler_a_sanitizer_cannot_run(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setenv(cpp_compiler.COMPILER, "no-such-compiler")
    assert sanitizers.main(["tsan"]) == 4
    assert "no-such-compiler is not there" in capsys.readouterr().err


def _plain(check: checks.Check) -> CudaCPURuntime:
    return CudaCPURuntime(check.text, check.names)


@pytest.mark.parametrize("name", ["asan", "oclgrind"])
def test_the_probes_hold_and_a_wrong_sum_is_told(name: str) -> None:
    check = CHECKS[name]
    made = (
        watched_process.CudaCPURuntime(check.text, check.names)
        if check.dialect == "cuda"
        else watched_process.runtime(check, None)
    )
    assert list(watched_process.probe(made, check)) == []
    with pytest.MonkeyPatch.context() as patched:
        wrong = [p._replace(expected=lambda words: words) for p in probes.PROBES[check.dialect]]
        patched.setitem(probes.PROBES, check.dialect, wrong)
        assert {r.kind for r in watched_process.probe(made, check)} == {DIFFERENCE}


FORGETS = Planted("a join that forgets a split", "", "from + lane < splits;", "from + lane < splits - 1;")
TOO_FAR = Planted("a unit behind all", "", "memory) + warp *", "memory) + (warp + 4) *")
A_STAGE_TOO_FAR = Planted("a stage behind all", "", "two + (i + 1 & 1)", "two + (i + 1) % 5")


@pytest.mark.parametrize(
    ("kernel", "bug", "found"),
    one_in(
        3,
        [
            ("attend_warps", FORGETS, [DIFFERENCE] * 3),
            ("attend_warps", TOO_FAR, [REFUSAL] * 5),
            ("prefill_warps", FORGETS, [DIFFERENCE]),
            ("prefill_warps", A_STAGE_TOO_FAR, [REFUSAL, REFUSAL, DIFFERENCE]),
            ("attend_warps", None, []),
            ("prefill_warps", None, []),
        ],
    ),
)
def test_attention_is_compared_with_what_is_exact(kernel: str, bug: Planted | None, found: list[str]) -> None:
    assert [report.kind for report in warps.attend(kernel, warps.Device("", bug), 1)] == found


NOT_NOTED = next(bug for bug in BUGS["asan-step"] if bug.kind == DIFFERENCE)


@pytest.mark.parametrize(("bug", "found"), [(None, []), (NOT_NOTED, [DIFFERENCE])])
def test_a_captured_step_is_compared_with_sequences_alone(bug: Planted | None, found: list[str]) -> None:
    assert [report.kind for report in steps.replay(steps.Device("", bug), 1)] == found


LAUNCHES = """
import os
from kvgpu.runtimes.cuda_cpu import CudaCPURuntime
del os.environ["LD_PRELOAD"]
for name in ("one", "two"):
    text = f'extern "C" __global__ void {name}(int *to) {{ to[blockIdx.x * 32 + threadIdx.x] = 1; }}'
    runtime = CudaCPURuntime(text, {name: 1}, "thread")
    runtime.run(name, (32, 1, 1), (128, 1, 1), runtime.allocate(4 * 32 * 128))
"""


@pytest.mark.slow
def test_programs_that_are_watched_together_share_what_threads_are_known_by(tmp_path: Path) -> None:
    """ThreadSanitizer ends a process with more than about 8100 threads; 4096 of each program would be more."""
    command = [*CHECKS["tsan"].command(tmp_path, first_only=True), "-c", LAUNCHES]
    assert subprocess.run(command, capture_output=True, text=True, check=False).returncode == 0


def test_examples_and_covers_are_replayed_spread_evenly() -> None:
    told = description(CudaCPU().describe())
    sources = dict(watched_process.traces(told, 200))
    assert all(chosen for chosen in sources.values()) and len(sources) > 10
    assert sum(len(c) for name, c in sources.items() if name.startswith("cover")) <= 200 + len(sources)
    assert not any("window=5" in name for name in sources)


def test_where_nothing_is_poisoned_nobody_looks_at_pages_that_were_not_written() -> None:
    told = description(CudaCPU().describe())
    peeked = [
        any(
            op["op"] == "peek"
            for chosen in dict(watched_process.traces(told, 10**6, 1, poison)).values()
            for t in chosen
            for op in t.ops
        )
        for poison in (True, False)
    ]
    assert peeked == [True, False]


def test_logs_of_all_processes_are_read_and_each_bug_is_told_once(tmp_path: Path) -> None:
    for name in ("log.1", "log.2"):
        (tmp_path / name).write_text(TSAN.format(other="0,0,0") * 2)
    assert len(list(CHECKS["tsan"].found(tmp_path))) == 1


def test_a_process_that_hangs_is_ended_and_the_check_fails(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(sanitizers, "DEADLINE", 0.5)
    monkeypatch.setattr(checks.Check, "prepare", lambda *_: None)
    monkeypatch.setattr(checks.Check, "command", lambda *_: ["sh", "-c", "echo begun; exec sleep 60"])
    assert sanitizers.main(["asan"]) == 3
    assert "did not come to its end: begun" in capsys.readouterr().out
