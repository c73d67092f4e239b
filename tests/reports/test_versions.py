"""Releases side by side: what came, what was mended, and what no script could ask; nothing else is a pass."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from kvconform.cli import main
from kvconform.commands.board import board
from kvconform.runner.record import redact
from kvreports import json_file
from kvreports.board.versions import Answer, Release, Row, Seen, Shown, Versions
from tools import shown, versions

ROOT = Path(__file__).parents[2]
KNOWN = ROOT / "reports" / "deviations" / "kvconform.toml"


def bug(name: str, *answers: Answer, sort: str = "unchecked") -> Shown:
    seen = [Seen(version=f"1.{i}", answer=a, told=f"saw {i}") for i, a in enumerate(answers)]
    return Shown(script=name, says=f"says {name}", sort=sort, seen=seen)


def record(*bugs: Shown, releases: int = 3) -> Versions:
    told = [Release(version=f"1.{i}", day="2026-01-01", beside={"numpy": "2.0"}) for i in range(releases)]
    return Versions(engine="an engine", spec="1.0", made="2026-02-01", releases=told, bugs=list(bugs))


@pytest.mark.parametrize(
    ("answers", "words", "story"),
    [
        (["has it", "has it"], ["has it", "has it"], "in all that were judged"),
        (["has it", "not there"], ["has it", "mended"], "mended in 1.1"),
        (["not there", "has it"], ["not there", "has it"], "came with 1.1"),
        (["cannot open", "has it"], ["cannot open", "has it"], "1.1 alone could be judged"),
        (["not there", "has it", "not there"], ["not there", "has it", "mended"], "came with 1.1, mended in 1.2"),
        (["has it", "not judged", "not there"], ["has it", "not judged", "mended"], "mended in 1.2"),
        (["cannot open", "not judged"], ["cannot open", "not judged"], "no release could be judged"),
        (["not there", "not there"], ["not there", "not there"], "in none that were judged"),
    ],
)
def test_what_came_and_what_was_mended_is_told(answers: list[Answer], words: list[str], story: str) -> None:
    row = Row(bug("one", *answers))
    assert [cell.word for cell in row.cells] == words and row.story == story


def written(tmp_path: Path, record: Versions) -> Path:
    path = tmp_path / "engine.json"
    json_file.write(path, json_file.dumps(record))
    return path


def test_the_page_has_a_row_a_bug_the_gravest_first_with_its_script_and_clauses(tmp_path: Path) -> None:
    mild = bug("mlx/broadcast", "has it", "has it", "has it")
    grave = bug("mlx/mended/batch_merge_empty", "cannot open", "has it", "not there", sort="wrong result")
    words = ["board", str(written(tmp_path, record(mild, grave))), "--known", str(KNOWN), "--out", str(tmp_path)]
    assert main(words) == 0
    page = (tmp_path / "VERSIONS.md").read_text(encoding="utf-8")
    first, second = ([c.strip() for c in li.split("|")[1:-1]] for li in page.splitlines() if "says mlx" in li)
    assert "reports/deviations/mlx/mended/batch_merge_empty.py" in first[0] and first[1] == "wrong result"
    assert first[3:] == ["cannot open", "has it", "mended", "mended in 1.2"]
    assert second[2] and "reports/deviations/mlx/broadcast.py" in second[0], "its clauses are those of the file"
    assert "1.2 has 1 of these 2 bugs. Within these releases 0 came and 1 was mended" in page
    assert "an engine: 1.2 has 1 of these 2 bugs" in (tmp_path / "README.md").read_text(encoding="utf-8")
    assert 'title="saw 2">mended</td>' in (tmp_path / "board.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (record(bug("one", "has it")), "one is not told of each release"),
        (record(releases=0), "it names no release"),
    ],
)
def test_a_record_with_holes_is_refused(
    broken: Versions, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, broken)
    assert main(["board", str(path), "--out", str(tmp_path)]) == 2 and said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "expected", "told"),
    [
        ("print('x\\nseen:     3'); raise SystemExit(False)", "has it", "3"),
        ("print('x\\nseen:     2'); raise SystemExit(True)", "not there", "2"),
        ("from json import nothing", "cannot open", "ImportError: cannot import name 'nothing' from 'json'"),
        ("import json; json.nothing", "cannot open", "AttributeError: module 'json' has no attribute 'nothing'"),
        ("import json; json.loads(1.5)", "not judged", "TypeError: the JSON object must be"),
        ("import re; re.sub('a', 'b', None)", "not judged", "TypeError: "),
        ("import textwrap; textwrap.dedent(3)", "not judged", ""),
        ("raise SystemExit(0)", "not judged", "nothing was printed"),
        ("import models", "cannot open", "ModuleNotFoundError: No module named 'models'"),
        ("import time; time.sleep(60)", "not judged", "more than 5 s"),
        ("import os; os._exit(7)", "not judged", "the process ended with 7"),
    ],
)
def test_only_a_script_that_ends_by_itself_judges(text: str, expected: str, told: str, tmp_path: Path) -> None:
    script = tmp_path / "one.py"
    script.write_text(text, encoding="utf-8")
    (tmp_path / "models.py").write_text("", encoding="utf-8")
    (seen,) = versions.ask(Path(sys.executable), [script], "1.0", seconds=5)
    assert (seen.answer, seen.told[: len(told)]) == (expected, told)


def test_a_script_that_raises_leaves_the_next_one_its_answer(tmp_path: Path) -> None:
    texts = [
        "raise ValueError('a')",
        "print('x\\nseen:     1'); raise SystemExit(True)",
        "import os; os._exit(1)",
        "",
    ]
    scripts = [tmp_path / f"{number}.py" for number in range(4)]
    for script, text in zip(scripts, texts, strict=True):
        script.write_text(text, encoding="utf-8")
    seen = versions.ask(Path(sys.executable), scripts, "1.0", seconds=60)
    assert [s.answer for s in seen] == ["not judged", "not there", "not judged", "not judged"]
    assert [s.told for s in seen[2:]] == ["the process ended with 1"] * 2


def test_an_error_within_the_engine_is_no_missing_name(tmp_path: Path) -> None:
    script, engine = tmp_path / "one.py", "/engine.py"
    err = "Traceback:\n  File \"{}\", line 3, in <module>\n{}AttributeError: no attribute 'shape'\n"
    inside = err.format(script, f'  File "{engine}", line 9, in extend\n')
    assert versions.answer(script, 1, "", inside) == "not judged"
    assert versions.answer(script, 1, "", err.format(script, "")) == "cannot open"


@pytest.mark.parametrize("name", versions.engines())
def test_the_published_record_is_of_these_releases_and_scripts(name: str) -> None:
    engine = versions.engines()[name]
    found = json_file.load(versions.PUBLISHED / f"{name}.json", Versions)
    scripts = versions.scripts(engine)
    assert [r.version for r in found.releases] == list(engine.releases), "nox -s versions"
    assert [(b.script, b.says, b.sort) for b in found.bugs] == [
        (shown.named(s), *versions.told(s)) for s in scripts
    ]
    (row, *_) = board([versions.PUBLISHED / f"{name}.json"], KNOWN, ROOT).compared[0].rows
    assert (ROOT / row.script).is_file()


def test_the_engine_of_known_deviations_is_among_the_releases_and_has_its_bugs() -> None:
    """A bug that is filed for the release that was judged is one that its script shows there."""
    for name, version in (("mlx-lm", "0.32.2"), ("transformers", "5.24.0")):
        found = json_file.load(versions.PUBLISHED / f"{name}.json", Versions)
        answers = {b.script: next(s.answer for s in b.seen if s.version == version) for b in found.bugs}
        filed = {*shown.SCRIPTS}
        assert {answer for script, answer in answers.items() if script in filed} == {"has it"}


@pytest.mark.parametrize("script", sorted(shown.FOLDER.glob("*/mended/*.py")), ids=lambda p: p.stem)
def test_the_script_of_a_mended_bug_is_short_and_needs_the_engine_alone(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    code = text.split(chr(34) * 3)[2].strip()
    assert len(code.splitlines()) <= 25 and not re.search(r"import .*kv(conform|spec|ref|adapters)", code)


def test_what_cannot_be_begun_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(versions.shutil, "which", lambda name: "/bin/uv")
    with pytest.raises(SystemExit):
        versions.main(["mlx"], tmp_path)
    assert "no table of mlx in versions.toml; there are mlx-lm, transformers" in capsys.readouterr().err
    monkeypatch.setattr(versions.shutil, "which", lambda name: None)
    with pytest.raises(SystemExit):
        versions.main(["mlx-lm"], tmp_path)
    assert "python3 -m pip install uv" in capsys.readouterr().err


@pytest.mark.parametrize("name", versions.engines())
def test_the_published_record_does_not_say_where_it_was_made(name: str) -> None:
    said = json.loads((versions.PUBLISHED / f"{name}.json").read_text(encoding="utf-8"))
    assert redact.published(said) == said
