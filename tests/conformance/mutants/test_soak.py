"""The soak: what is correct is never accused, what is wrong is kept, and nothing is lost when it is cut short."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import pytest

from kvadapters.reference import Reference
from kvconform.mutants import correct_variants, soak
from kvconform.mutants.fakes import DoesNothing
from kvconform.mutants.soak import Soak
from kvref.store import Store
from kvspec.operations import notation
from kvspec.trace import from_json


def test_the_reference_is_judged_by_the_list_model_and_others_by_the_reference(tmp_path: Path) -> None:
    levels = {
        name: {c.level for c in Soak(name, soak.adapter(name), tmp_path).about.chapters.values()}
        for name in ("reference", "HeadMajor", "Whole")
    }
    assert levels == {"reference": {"visible"}, "HeadMajor": {"storage"}, "Whole": {"visible"}}


@pytest.mark.parametrize("name", ["Whole", "Linked"])
def test_a_correct_variant_is_not_accused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "BATCH", 5)
    seen = Soak(name, soak.adapter(name), tmp_path / "out")
    seeds = list[int]()
    soak.soaked([seen], 300, count(3), lambda: not seeds.append(seen.seed))
    assert seen.operations >= 300 and not seen.found and not (tmp_path / "out").exists()
    assert seeds == list(range(3, 3 + len(seeds))) and len(seen.by_source) > 1


def test_every_chapter_of_the_reference_and_the_system_is_a_source(tmp_path: Path) -> None:
    about = Soak("reference", soak.adapter("reference"), tmp_path).about
    assert {s.partition("-")[0] for s in soak.sources(list(about.chapters))} == {"system", *about.chapters}


def test_the_same_traces_are_judged_on_each_until_it_has_enough(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(soak, "BATCH", 3)
    sound, idle = (Soak(n, a, tmp_path) for n, a in (("Whole", soak.adapter("Whole")), ("idle", DoesNothing())))
    seen = list[tuple[int, int]]()
    soak.soaked([sound, idle], 900, count(0), lambda: not seen.append((sound.seed, idle.seed)))
    assert sound.operations >= 900 and not sound.found and len(idle.found) >= soak.ENOUGH
    assert seen[0] == (0, 0) and seen[-1][0] > seen[-1][1]


def test_processes_share_the_seeds(tmp_path: Path, capfd: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(soak, "BATCH", 2)
    arguments = ["Whole", "--operations", "200", "--processes", "2", "--seed", "4", "--out", str(tmp_path)]
    assert soak.main(arguments) == 0
    shown = capfd.readouterr().out.splitlines()
    seeds = {int(line.rpartition(" ")[2]) % 2 for line in shown if line.startswith("Whole")}
    assert seeds == {0, 1} and all("0 accused" in line for line in shown if line.startswith("Whole"))


def test_what_differs_is_written_down_short_and_can_be_replayed(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(soak, "BATCH", 3)
    seen = Soak("idle", DoesNothing(), tmp_path / "out")
    soak.soaked([seen], 10**9, count(0), lambda: True)
    assert soak.ENOUGH <= len(seen.found) < soak.ENOUGH + 3
    trace = from_json(json.loads(seen.found[0].read_text()))
    assert seen.run(trace).failed and len(trace.ops) <= 2
    assert "expected" in seen.found[0].with_suffix(".txt").read_text()


def test_an_accusation_is_the_status(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(soak, "BATCH", 3)
    name = "kvconform.mutants.fakes:DoesNothing"
    assert soak.main([name, "--operations", "1", "--processes", "1", "--out", str(tmp_path)]) == 1
    assert "accused" in capsys.readouterr().out and list(tmp_path.glob("*.json"))


def test_what_was_found_before_an_interruption_is_told(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kvconform.mutants.soak", "Whole", "--processes", "2", "--out", str(tmp_path)]
    soaking = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert soaking.stderr is not None
    soaking.stderr.readline()  # it is under way
    soaking.terminate()
    shown, _ = soaking.communicate(timeout=120)
    told = [line for line in shown.splitlines() if line.startswith("Whole")]
    assert soaking.returncode == 130 and len(told) == 2
    assert all("0 accused" in line and line.endswith("(interrupted)") for line in told)


def test_the_variants_can_be_named() -> None:
    for variant in correct_variants.VARIANTS:
        assert isinstance(soak.adapter(variant.__name__), variant)


class Off(Reference):
    """A store whose fingerprint is one too large."""

    class store(Store):
        def fingerprint(self, position: int) -> float:
            return super().fingerprint(position) + 1

    caches: ClassVar[dict[str, Any]] = {**Reference.caches, "store": store}


def test_the_fingerprint_of_rows_that_were_attended_is_known_to_the_list_model(tmp_path: Path) -> None:
    """The soak once accused the reference here: the list took rows of an attend for rows of an append."""
    trace = notation.trace("store", "layers=1 max_len=2", "captureattend g 0; replayattend g; fingerprint 0")
    sound, wrong = (Soak(name, a, tmp_path) for name, a in (("reference", Reference()), ("off", Off())))
    wrong.about = wrong.about.at_most("visible")
    assert not sound.run(trace).failed
    assert sound.run(trace).level == "visible" and wrong.run(trace).blamed == ("STORE-27",)
