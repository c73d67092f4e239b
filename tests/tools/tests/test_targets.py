"""The page of targets: what it compares, that a target that is missed is told, and that it is the one published."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kvprofile.cases import cases
from kvreports import json_file
from kvreports.profile import figures
from kvspec.records.profile import Profile
from support.samples.profile_samples import changed, measurement, spread, whole
from tools import targets
from tools.targets import Target

ROOT = Path(__file__).parents[3]


def record(adapter: str, *measurements: dict[str, Any]) -> Profile:
    return changed(whole(), adapter={"name": adapter}, measurements=measurements)


def case(id: str, ms: float, nbytes: int = 0, **more: Any) -> dict[str, Any]:
    return measurement("any", ms, nbytes, id=id, **more)


def target(what: str, wanted: float, cases: str = "", **more: Any) -> Target:
    return Target("it is fast", ["cupy"], cases, what, "times", wanted, **more)


def test_what_is_published_is_what_the_profiles_say() -> None:
    text = (ROOT / targets.PAGE).read_text(encoding="utf-8")
    assert targets.page(targets.published(ROOT)) == text, "run python -m tools.targets"


def test_each_target_is_about_cases_that_there_are() -> None:
    ids = [case.id for case in chain(cases("table"), cases("models"))]
    about = {t.says: [i for i in ids if re.search(t.cases, i)] for t in targets.targets()}
    assert [says for says, found in about.items() if not found] == []
    of = [(t, i) for t in targets.targets() if t.what.startswith("of ") for i in about[t.says]]
    assert of and {re.sub(t.cases, t.what[3:], i) for t, i in of} & set(ids)


@pytest.mark.parametrize(
    ("what", "number"),
    [("fraction", 0.4), ("device", 4.0), ("the best peer", 2.0), ("the peer torch", 0.5), ("the peer ggml", None)],
)
def test_a_number_is_of_the_case(what: str, number: float | None) -> None:
    sample = record("cupy", case("a", 0.004, 32_000))
    assert target(what, 1).number(sample.measurements[0], sample) == pytest.approx(number)


def test_a_case_is_compared_with_another() -> None:
    sample = record("cupy", case("x/one/n4", 0.006), case("x/one", 0.004), case("x/two/n4", 0.006))
    of = target(r"of \1", 1.4, "^(.*)/n4$")
    assert of.measured("cupy", [sample]) == [(pytest.approx(1.5), "x/one/n4", figures.machine(sample))]


def test_the_furthest_comes_first_and_small_cases_do_not_count() -> None:
    fast, slow = (case(name, 1.0, 64, fraction=spread(f)) for name, f in (("fast", 0.9), ("slow", 0.5)))
    sample = record("cupy", fast, slow, case("small", 1.0, 8, fraction=spread(0.1)))
    numbers = target("fraction", 0.8, bytes=32).measured("cupy", [sample, record("opencl", slow)])
    assert [id for _, id, _ in numbers] == ["slow", "fast"]
    assert [target("fraction", 0.8).held(number) for number, *_ in numbers] == [False, True]
    assert [target("device", 0.8).held(number) for number, *_ in numbers] == [True, False]


def test_the_machine_is_the_gpu_where_there_is_one() -> None:
    sample = record("cupy")
    two = msgspec.structs.replace(sample, machine={"cpu": "AMD EPYC", "cores": 2})
    assert figures.machine(two) == "AMD EPYC, 2 cores"
    gpu = {"machine": {"GPU": "at 1980 MHz"}, "adapter": {"device": "NVIDIA H200"}}
    assert figures.machine(msgspec.structs.replace(sample, **gpu)) == "NVIDIA H200"


@pytest.mark.parametrize(("fraction", "status", "held"), [(0.69, 1, "0 of 1"), (0.71, 0, "1 of 1")])
def test_a_target_that_is_missed_is_told(
    fraction: float, status: int, held: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample = record("opencl", case("view/m/f16/1", 1.0, 1 << 27, fraction=spread(fraction)))
    path = tmp_path / "profile.json"
    path.write_bytes(json_file.dumps(sample).encode())
    assert targets.main([str(path)]) == status
    (row,) = (line for line in capsys.readouterr().out.splitlines() if "`view/m/f16/1`" in line)
    assert [cell.strip() for cell in row.split("|")][4:7] == [f"{fraction:.2f}", "`view/m/f16/1`", held]
