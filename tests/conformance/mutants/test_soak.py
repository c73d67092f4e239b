"""The soak: what is correct never fails, what is wrong is kept, and nothing is lost when it is cut short."""

from __future__ import annotations

import json
import mmap
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, ClassVar

import pytest

from kvadapters.reference import Reference
from kvconform import cli
from kvconform.generate.variations import VARIATIONS
from kvconform.runner.pool import opened
from kvconform.worker import memory
from kvref.caches.store import Store
from kvspec import notation
from kvspec.trace import from_json
from kvworkshop import correct_variants, soak
from kvworkshop.commands.soak import Progress
from kvworkshop.soak import Judged, Soak

IDLE = "kvworkshop.fakes:DoesNothing"


def soaked(folder: Path, operations: int, *names: str, seed: int = 0, progress: Any = lambda soak: None) -> Soak:
    """A soak of these adapters in one process."""
    with opened(1) as pool:
        seen = Soak({name: soak.describe(name) for name in names}, operations, folder, seed)
        seen.run(pool, lambda: progress(seen))
    return seen


def command(folder: Path, *arguments: str) -> int:
    return cli.main(["soak", *arguments, "--out", str(folder)])


def test_the_reference_is_judged_by_the_list_model_and_others_by_the_reference() -> None:
    levels = {
        name: {c.level for c in soak.describe(name).chapters.values()}
        for name in ("reference", "HeadMajor", "Whole")
    }
    assert levels == {"reference": {"visible"}, "HeadMajor": {"storage"}, "Whole": {"visible"}}


@pytest.mark.parametrize("name", ["Whole", "Linked"])
def test_a_correct_variant_passes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "BATCH", 5)
    seeds = list[int]()
    score = soaked(
        tmp_path / "out", 300, name, seed=3, progress=lambda s: seeds.append(s.scores[name].seed)
    ).scores[name]
    assert score.operations >= 300 and not score.found and not (tmp_path / "out").exists()
    assert seeds == list(range(3, 3 + len(seeds)))


def test_a_soak_judges_all_forms_and_large_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "BATCH", 6)
    score = soaked(tmp_path / "out", 2000, "Linked").scores["Linked"]
    forms = {form.name for form in VARIATIONS}
    assert set(score.by_source) == {"explored", "large", *forms} and not score.found


def test_what_never_fits_is_not_drawn_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "BATCH", 6)
    both = soaked(tmp_path / "out", 400, "RowLimit", "Whole")
    assert both.scores["Whole"].fits - both.scores["RowLimit"].fits
    both.scores["Whole"].by_source["explored"] = 10**9
    both.operations = 10**6
    assert set(both._sources()) <= both.scores["RowLimit"].fits


def test_every_chapter_of_the_reference_and_the_system_is_a_source() -> None:
    about = soak.describe("reference")
    assert {s.partition("-")[0] for s in soak.explored(tuple(about.chapters))} == {"system", *about.chapters}


def test_the_same_traces_are_judged_on_each_until_it_has_enough(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(soak, "BATCH", 3)
    seen = list[tuple[int, int]]()
    scores = soaked(
        tmp_path,
        900,
        "Whole",
        IDLE,
        progress=lambda s: seen.append((s.scores["Whole"].seed, s.scores[IDLE].seed)),
    ).scores
    assert scores["Whole"].operations >= 900 and not scores["Whole"].found
    assert len(scores[IDLE].found) >= soak.ENOUGH
    assert seen[0] == (0, 0) and seen[-1][0] > seen[-1][1]


def test_processes_share_the_seeds(tmp_path: Path, capfd: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(soak, "BATCH", 2)
    assert command(tmp_path, "Whole", "--operations", "200", "--processes", "2", "--seed", "4") == 0
    first, sources, *found, held = capfd.readouterr().out.splitlines()
    assert first.startswith("Whole: ") and ", 0 failed, " in first and not found
    assert re.fullmatch(
        r"memory of this process: \d+ MiB after a tenth of the operations, \d+ MiB at the end", held
    )
    batches = int(first.rpartition(" ")[2]) - 4 + 1
    assert 2 <= batches < 100 and len(sources.split(",")) <= batches


class UnderWay:
    """A soak as far as its progress looks at it."""

    share = 0.0
    scores: ClassVar[dict[str, Any]] = {}
    operations = 10


def test_memory_is_looked_at_after_a_tenth_and_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    held = [n << 20 for n in (40, 50, 60)]
    monkeypatch.setattr("kvconform.worker.memory.resident", lambda: held.pop(0))
    under_way: Any = UnderWay()
    progress = Progress(under_way)
    for under_way.share in (0.0, 0.09, 0.1, 0.5):
        progress()
    assert progress.memory() == "memory of this process: 40 MiB after a tenth of the operations, 50 MiB at the end"
    assert Progress(under_way).memory() == "memory of this process: 60 MiB at the end"


def test_memory_is_that_of_this_process() -> None:
    before = memory.resident()
    with mmap.mmap(-1, 64 << 20) as block:  # an allocator might give memory that was there before
        block.write(b"1" * len(block))
        assert memory.resident() > before + (48 << 20)


def test_the_night_soaks_every_variant() -> None:
    sessions = tomllib.loads((Path(__file__).parents[2] / "sessions.toml").read_text(encoding="utf-8"))
    (command,) = sessions["commands"]["nightly"]["run"]
    assert {v.__name__ for v in correct_variants.VARIANTS} < set(command.split())


def test_what_differs_is_written_down_short_and_can_be_replayed(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(soak, "BATCH", 3)
    found = soaked(tmp_path / "out", 10**9, IDLE).scores[IDLE].found
    assert len(found) >= soak.ENOUGH
    trace = from_json(json.loads(found[0].read_text()))
    assert soak.judged(IDLE).run(trace).failed and len(trace.ops) <= 2
    assert "expected" in found[0].with_suffix(".txt").read_text()


def test_a_failure_is_the_status(tmp_path: Path, capfd: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(soak, "BATCH", 3)
    assert command(tmp_path, IDLE, "--operations", "1", "--processes", "1") == 1
    assert "failed" in capfd.readouterr().out and list(tmp_path.glob("*.json"))


class Dying(Reference):
    """The process that judges it dies with it."""

    def open(self, kind: str, config: Any) -> Any:
        os._exit(3)


def test_a_process_that_dies_is_told_and_the_others_go_on(tmp_path: Path, capfd: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(soak, "BATCH", 2)
    monkeypatch.setattr(soak, "ENOUGH", 3)
    assert command(tmp_path, f"{__name__}:Dying", "--operations", "1", "--processes", "1") == 3
    lost = [line for line in capfd.readouterr().err.splitlines() if "died with status 3" in line]
    assert len(lost) == 3 and len(set(lost)) == 3


AT_ONCE = """
import sys
import tomllib
from kvconform import cli
from kvworkshop.commands import soak

soak.EVERY = 0.0
sys.exit(cli.main())
"""
"""The command line, where a soak tells its progress after each batch."""


def test_what_was_judged_before_an_interruption_is_told(tmp_path: Path) -> None:
    arguments = ["soak", "Whole", "--processes", "2", "--out", str(tmp_path)]
    called = [sys.executable, "-c", AT_ONCE, *arguments]
    soaking = subprocess.Popen(called, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert soaking.stderr is not None
    assert any("operations" in line for line in soaking.stderr)  # it is under way
    soaking.terminate()
    shown, said = soaking.communicate(timeout=120)
    (told,) = [line for line in shown.splitlines() if line.startswith("Whole")]
    assert soaking.returncode == 130 and "Traceback" not in said
    assert "0 failed" in told and told.endswith("(interrupted)")


def test_the_variants_can_be_named() -> None:
    for variant in correct_variants.VARIANTS:
        assert isinstance(soak.judged(variant.__name__).adapter, variant)


class Off(Reference):
    """A store whose fingerprint is one too large."""

    class store(Store):
        def fingerprint(self, position: int) -> float:
            return super().fingerprint(position) + 1

    caches: ClassVar[dict[str, Any]] = {**Reference.caches, "store": store}


def test_the_fingerprint_of_rows_that_were_attended_is_known_to_the_list_model() -> None:
    """The soak once failed the reference here: the list took rows of an attend for rows of an append."""
    trace = notation.trace("store", "layers=1 max_len=2", "captureattend g 0; replayattend g; fingerprint 0")
    about = soak.describe("reference")
    sound, wrong = (Judged(adapter, about) for adapter in (Reference(), Off()))
    assert not sound.run(trace).failed
    assert sound.run(trace).level == "visible" and wrong.run(trace).blamed == ("STORE-27",)
