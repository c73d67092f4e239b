"""The command for a lent GPU: its order and budget, parts that fail, sessions that are cut, and what is carried."""

from __future__ import annotations

import json
import os
import re
import runpy
import signal
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import requires
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from kvconform import cli
from kvprofile.cases import cases
from tools import targets
from tools.on_gpu import __main__ as on_gpu
from tools.on_gpu import probe, wheels
from tools.on_gpu.log import Log
from tools.on_gpu.parts import MACHINES, Part, parts
from tools.on_gpu.processes import GRACE, Ended, Processes
from tools.on_gpu.session import Session

FIRST, SECOND, THIRD = "first", "second", "third"


class Machine:
    """Stands in for the processes, and for the time that they take. A part takes what `takes` says, or is cut."""

    def __init__(self, takes: dict[str, float], statuses: dict[str, int] | None = None) -> None:
        self.takes, self.statuses, self.time = takes, statuses or {}, 1000.0
        self.given: dict[str, float] = {}

    def __call__(self, words: Sequence[str], seconds: float) -> Ended:
        name = words[0]
        self.given[name] = seconds
        self.time += min(seconds, self.takes.get(name, 1.0))
        if self.takes.get(name, 1.0) > seconds:
            return Ended(130, True)
        return Ended(self.statuses.get(name, 0), False)


def part(name: str, least: float = 10, share: float = 0.5, **more: Any) -> Part:
    return Part(name, f"does the {name}", (name, "{minutes}"), least, share, **more)


THREE = [part(FIRST), part(SECOND), part(THIRD)]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log(tmp_path) as made:
        yield made


def session(log: Log, machine: Any, seconds: float = 100 + GRACE, todo: Sequence[Part] = THREE) -> Session:
    return Session(todo, seconds, machine, log, lambda: machine.time)


def states(made: Session) -> dict[str, str]:
    return {state["name"]: state["state"] for state in made.states}


def test_what_a_part_does_not_take_goes_to_those_behind_it(log: Log) -> None:
    machine = Machine({FIRST: 20, SECOND: 30, THIRD: 1})
    made = session(log, machine)
    assert made.run() == 0
    assert machine.given == {FIRST: 50, SECOND: 40, THIRD: 25}
    assert list(states(made).items()) == [(name, "passed") for name in (FIRST, SECOND, THIRD)]


def test_a_part_whose_time_is_over_is_cut_and_one_without_time_is_left_out(log: Log) -> None:
    machine = Machine({FIRST: 1000, SECOND: 1000})
    todo = [part(FIRST), part(SECOND), part(THIRD, least=30)]
    made = session(log, machine, todo=todo)
    assert made.run() == 3
    assert machine.given == {FIRST: 50, SECOND: 25}
    assert states(made) == {FIRST: "cut short", SECOND: "cut short", THIRD: "left out"}
    assert made.states[2]["why"] == "25 s are left, and it needs 30"


def test_a_cheap_part_is_done_where_a_dear_one_before_it_is_left_out(log: Log) -> None:
    made = session(log, Machine({}), todo=[part(FIRST, least=200), part(SECOND, least=60, share=0.1)])
    assert made.run() == 3
    assert states(made) == {FIRST: "left out", SECOND: "passed"}
    assert made.states[1]["limit"] == 60
    assert made.states[1]["command"] == [SECOND, "1"]


def test_a_part_that_fails_stops_no_other(log: Log, capsys: pytest.CaptureFixture[str]) -> None:
    made = session(log, Machine({}, {FIRST: 1, SECOND: -9}))
    assert made.run() == 1
    assert states(made) == {FIRST: "failed", SECOND: "failed", THIRD: "passed"}
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "on_gpu: passed: third; failed: first, second; cut short: none; left out: none"


def test_a_process_that_cannot_start_stops_no_other(log: Log) -> None:
    machine = Machine({})

    def start(words: Sequence[str], seconds: float) -> Ended:
        if words[0] == FIRST:
            raise OSError("no memory")
        return machine(words, seconds)

    made = Session(THREE, 100, start, log, lambda: machine.time)
    assert made.run() == 1
    assert states(made) == {FIRST: "failed", SECOND: "passed", THIRD: "passed"}


@pytest.mark.parametrize(("status", "ends", "second"), [(4, 4, "left out"), (1, 1, "passed")])
def test_only_where_nothing_can_run_nothing_else_is_tried(status: int, ends: int, second: str, log: Log) -> None:
    todo = [part(FIRST, vital=True), part(SECOND)]
    made = session(log, Machine({}, {FIRST: status}), todo=todo)
    assert made.run() == ends
    assert states(made) == {FIRST: "failed", SECOND: second}


def test_a_status_that_is_fine_is_no_failure(log: Log) -> None:
    assert session(log, Machine({}, {FIRST: 1}), todo=[part(FIRST, fine=(0, 1))]).run() == 0


def test_each_state_is_on_disk_before_the_next_part_begins(log: Log, tmp_path: Path) -> None:
    seen: list[list[str]] = []

    class Looking(Machine):
        def __call__(self, words: Sequence[str], seconds: float) -> Ended:
            seen.append([p["state"] for p in json.loads((tmp_path / "parts.json").read_text())["parts"]])
            if words[0] == SECOND:
                raise KeyboardInterrupt
            return super().__call__(words, seconds)

    assert session(log, Looking({})).run() == 130
    assert seen == [["running", "waiting", "waiting"], ["passed", "running", "waiting"]]
    left = json.loads((tmp_path / "parts.json").read_text())["parts"]
    assert [p["state"] for p in left] == ["passed", "cut short", "left out"]
    assert {p["why"] for p in left[1:]} == {"the session was interrupted"}


def test_the_folder_is_packed_after_each_part(tmp_path: Path) -> None:
    packed, names = tmp_path / "out" / "gpu.tar.gz", []

    class Writing(Machine):
        def __call__(self, words: Sequence[str], seconds: float) -> Ended:
            with tarfile.open(packed) as file:
                names.append({n for n in file.getnames() if n.endswith(".json")})
            (tmp_path / "gpu" / f"{words[0]}.json").write_text("{}")
            return super().__call__(words, seconds)

    with Log(tmp_path / "gpu", packed) as log:
        session(log, Writing({})).run()
    assert names[0] == {"gpu/parts.json"}
    assert names[2] == {"gpu/parts.json", "gpu/first.json", "gpu/second.json"}
    assert [p.name for p in packed.parent.iterdir()] == ["gpu.tar.gz"]


def test_it_is_packed_while_a_part_runs_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = tmp_path / "gpu.tar.gz"
    with Log(tmp_path / "gpu", packed) as log:
        log.packed()
        (tmp_path / "gpu" / "journal.jsonl").write_text("{}")
        for every, there in ((1e9, False), (0.0, True)):
            monkeypatch.setattr("tools.on_gpu.log.EVERY", every)
            log.write("a case")
            with tarfile.open(packed) as file:
                assert ("gpu/journal.jsonl" in file.getnames()) == there


@pytest.fixture
def started(tmp_path: Path) -> Callable[..., tuple[Ended, str]]:
    def start(text: str, seconds: float = 30.0, grace: float = 10.0) -> tuple[Ended, str]:
        (tmp_path / "a_part.py").write_text(text)
        said: list[str] = []
        env = os.environ | {"PYTHONPATH": str(tmp_path), "PYTHONUNBUFFERED": "1"}
        return Processes(tmp_path, env, said.append, grace)(["a_part"], seconds), "".join(said)

    return start


def test_a_process_says_everything_and_gives_its_status(started: Callable[..., tuple[Ended, str]]) -> None:
    text = "import sys; print('out'); sys.stderr.write('err\\n'); sys.exit(7)"
    assert started(text) == ((7, False), "out\nerr\n")


def test_a_process_is_interrupted_first_and_killed_where_that_does_not_help(
    started: Callable[..., tuple[Ended, str]],
) -> None:
    writes = "import time\ntry: time.sleep(60)\nexcept KeyboardInterrupt: print('written'); raise SystemExit(130)"
    was = signal.signal(signal.SIGINT, signal.SIG_IGN)  # what a shell does to a job behind nohup
    try:
        assert started(writes, 2) == ((130, True), "written\n")
    finally:
        signal.signal(signal.SIGINT, was)
    stubborn = "import signal, time; signal.signal(2, signal.SIG_IGN); time.sleep(60)"
    assert started(stubborn, 0.5, grace=0.2) == ((-9, True), "")


def test_the_workers_of_a_process_do_not_outlive_it(started: Callable[..., tuple[Ended, str]]) -> None:
    text = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], stdout=-3)\n"
        "print(child.pid)"
    )
    _, said = started(text)
    until = time.monotonic() + 10
    while lives(int(said)) and time.monotonic() < until:
        time.sleep(0.01)
    assert not lives(int(said))


def lives(process: int) -> bool:
    """Whether there is such a process, dead ones apart that nobody waited for."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wheel(folder: Path, name: str, version: str = "1.0") -> Path:
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as file:
        file.writestr(f"{name}/__init__.py", "here = 1\n")
    return folder


def test_only_wheels_of_missing_and_older_packages_are_unpacked(tmp_path: Path) -> None:
    into = tmp_path / "into"
    for name, version in (("a_missing_package", "1.0"), ("numpy", "1.0"), ("pytest", "999.10")):
        wheel(tmp_path, name, version)
    said = list(wheels.unpack(tmp_path, into))
    assert said[0] == "a_missing_package-1.0-py3-none-any.whl: used"
    assert re.fullmatch(r"numpy-1\.0-py3-none-any\.whl: not used, numpy \S+ is there", said[1])
    assert said[2] == "pytest-999.10-py3-none-any.whl: used"
    assert sorted(p.name for p in into.iterdir()) == ["a_missing_package", "pytest"]


def test_a_folder_that_is_none_and_a_wheel_that_is_none_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken-1.0-py3-none-any.whl").write_text("no zip")
    for folder, words in ((tmp_path / "nowhere", "nowhere"), (tmp_path, "is no wheel")):
        assert on_gpu.main(["--wheels", str(folder), "--out", str(tmp_path / "out")]) == 2
        assert words in capsys.readouterr().out


def test_what_is_needed_is_all_that_the_package_requires_and_what_that_requires() -> None:
    """`pip download --no-deps` brings nothing else."""
    todo = tomllib.loads((on_gpu.ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    needed = set[str]()
    while todo:
        wanted = Requirement(todo.pop())
        if wanted.name not in needed and (wanted.marker is None or wanted.marker.evaluate({"extra": ""})):
            needed.add(wanted.name)
            todo += requires(wanted.name) or []
    assert sorted(map(canonicalize_name, wheels.NEEDED)) == sorted(map(canonicalize_name, needed))


def test_a_missing_package_is_named_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(wheels, "NEEDED", ("numpy", "a_missing_package"))
    assert probe.main(["cupy", str(tmp_path / "device.json")]) == 4
    said = capsys.readouterr().err
    assert "missing packages: a_missing_package." in said and "--wheels" in said
    assert "pip download" in said and "-d wheels a_missing_package`" in said


class Clocked:
    """An adapter whose device is busy for this many seconds by its own clock."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def describe(self) -> dict[str, Any]:
        return {"name": "clocked"}

    def clock(self) -> str:
        return "a clock"

    def state(self) -> dict[str, str]:
        return {"GPU": "cool"}

    def elapsed(self, work: Callable[[], None]) -> float:
        return self.seconds

    def synchronise(self) -> None: ...

    def streams(self, most: int) -> Any:
        return SimpleNamespace(copy=lambda: None, moved=lambda name: most)


@pytest.mark.parametrize(("seconds", "status"), [(1e-9, 0), (1.0, 1)])
def test_a_clock_that_cannot_be_right_is_told(
    seconds: float, status: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("kvadapters.find.load", lambda name: Clocked(seconds))
    path = tmp_path / "device.json"
    assert probe.main(["clocked", str(path)]) == status
    found = json.loads(path.read_text())
    assert found["adapter"] == {"name": "clocked"}
    assert found["clock"]["device seconds"] == seconds and found["clock"]["after"] == {"GPU": "cool"}
    assert set(found["machine"]["packages"]) == set(probe.LIBRARIES)


def test_where_there_is_no_device_what_is_known_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from kvspec.errors import CannotRun

    def load(name: str) -> Any:
        raise CannotRun("there is no GPU")

    monkeypatch.setattr("kvadapters.find.load", load)
    path = tmp_path / "device.json"
    assert probe.main(["cupy", str(path)]) == 4
    assert list(json.loads(path.read_text())) == ["machine"]


COMMANDS = [
    pytest.param([w.replace("{minutes}", "1") for w in words[1:]], id=f"{machine} {each.name}")
    for machine in MACHINES
    for each in parts(machine, Path("out"))
    for words in [each.words[1:] if each.words[0] == "tools.on_gpu.with_hopper" else each.words]
    if words[0] == "kvconform"
]


@pytest.mark.parametrize("given", COMMANDS)
def test_each_part_is_a_command_that_there_is(given: list[str]) -> None:
    assert cli.parser().parse_args(given)


def test_the_order_is_what_is_there_then_conformance_then_limits_targets_and_long_runs() -> None:
    names = [each.name for each in parts("gpu", Path("out"))]
    first = ["device", "names", "quick", "quick-fast", "strict", "limits", "fast", "targets", "models"]
    assert names[: len(first)] == first
    hopper = ["quick-hopper", "hopper", "latent"]
    assert names[len(first) :] == ["targets-models", *hopper, "run", "run-fast", "profile", "profile-fast"]
    assert [each.name for each in parts("emulation", Path("out"))] == [n for n in names if n != "names"]


def test_every_case_of_a_target_of_the_fast_adapter_is_measured_among_the_first() -> None:
    ids = [case.id for case in chain(cases("table"), cases("models"))]
    about = [t for t in targets.targets() if "cupy-fast" in t.adapters and t.cases]
    wanted = {i for t in about for i in ids if re.search(t.cases, i)}
    wanted |= {re.sub(t.cases, t.what[3:], i) for t in about if t.what[:3] == "of " for i in wanted}
    assert wanted & set(ids) and not [i for i in wanted if not re.search(MACHINES["gpu"].cases, i)]


def test_the_kernels_for_compute_capability_9_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    replaced: list[tuple[Any, ...]] = []
    monkeypatch.setattr(os, "execve", lambda *given: replaced.append(given))
    monkeypatch.setattr(sys, "argv", ["with_hopper", "kvconform", "run", "cupy-fast"])
    runpy.run_module("tools.on_gpu.with_hopper", run_name="__main__")
    ((program, words, environment),) = replaced
    assert program == sys.executable and words[1:] == ["-m", "kvconform", "run", "cupy-fast"]
    assert environment["KVCONFORM_HOPPER"] == "1" and environment["PATH"] == os.environ["PATH"]


def test_an_unknown_part_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as e:
        on_gpu.main(["--only", "nothing"])
    assert e.value.code == 2
    assert "no part nothing; there are device, names" in capsys.readouterr().err


@pytest.mark.slow
def test_a_session_on_the_emulation_leaves_its_records(tmp_path: Path) -> None:
    packed = tmp_path / "gpu.tar.gz"
    command = (
        "-m",
        "tools.on_gpu",
        "1.5",
        "--on",
        "emulation",
        "--out",
        str(tmp_path / "gpu"),
        "--pack",
        str(packed),
    )
    done = subprocess.run(
        [sys.executable, *command], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3, done.stdout + done.stderr
    found = {p["name"]: p for p in json.loads((tmp_path / "gpu" / "parts.json").read_text())["parts"]}
    assert found["device"]["state"] == "passed" and found["run"]["state"] == "left out"
    assert {p["state"] for p in found.values()} <= {"passed", "cut short", "left out"}
    with tarfile.open(packed) as file:
        assert {"gpu/device.json", "gpu/quick/record.json", "gpu/log.txt"} <= set(file.getnames())
