"""A chapter more is its own files and one line: `new-chapter` adds one to a copy of the tree; it judges caches."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from kvspec.errors import BadInput
from kvworkshop.commands import new_chapter
from tools.floors import PACKAGES

ROOT = Path(__file__).parents[2]

NAME = "folio"
MOST_FILES = 12

LOOKS_AT_CHAPTERS = (
    "test_floors.py test_nothing_is_skipped.py spec tools/tests/test_spec_pages.py conformance/checks "
    "conformance/test_foreign.py conformance/generate conformance/diagnosis conformance/profiling "
    "conformance/mutants"
)
"""The tests that ask something of each chapter."""

LATER = " or ".join(
    (
        "links_in_chapters_are_whole",
        "a_whole_run_on_a_clause_reads_what_it_needs_alone",
        "what_is_frozen_is_what_a_quick_run_explores",
        "frozen_walks_are_given_to_a_claim_of_all_by_the_default_seed_alone",
        "each_operation_that_takes_rows_is_called_often_on_each_kind",
        "each_kind_has_lives_and_a_check_of_them",
        "faults_are_planted_in_every_module_or_the_table_says_why_not",
    )
)
"""What holds later: when the author links to reports of bugs, writes large traces and lives, and plants faults;
and when traces of the other chapters are frozen anew, for a claim that has one chapter more."""


def contents(tree: Path) -> dict[str, str]:
    """The texts of the files in the rooms where a chapter has any."""
    rooms = ("spec", "reference", "conformance", "tests/support")
    found = (
        file for room in rooms for pattern in ("*.py", "*.toml", "*.md") for file in (tree / room).rglob(pattern)
    )
    return {str(file.relative_to(tree)): file.read_text(encoding="utf-8") for file in found}


def copied(tree: Path) -> Path:
    """Copy the checkout: what git knows of it, and what is new."""
    listed = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    subprocess.run(("git", "init", "--quiet", tree), check=True)  # tests ask git for the pages there are
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, tree / name)
    return tree


def python(tree: Path, folder: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder of the copy, with the packages of the copy."""
    path = os.pathsep.join([*(str((tree / p).parent) for p in PACKAGES), str(tree / "tests")])
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        cwd=tree / folder,
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        timeout=3600,
    )


def judged(tree: Path, adapter: str) -> tuple[int, str]:
    """The exit status, and what a quick run says."""
    done = python(tree, ".", "-m", "kvconform", "run", adapter, "--quick", "--chapter", NAME, "--processes", "1")
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def before_and_after(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str], dict[str, str]]:
    """A copy with one chapter more, frozen; and its files before and after the command."""
    tree = copied(tmp_path_factory.mktemp("tree"))
    before = contents(tree)
    assert new_chapter.main(Namespace(name=NAME, letters=None, into=str(tree))) == 0
    after = contents(tree)
    done = python(tree, "tests", "-m", "tools.freeze_vectors", "--write", "--chapter", NAME)
    assert done.returncode == 0, done.stderr
    return tree, before, after


@pytest.fixture(scope="module")
def tree(before_and_after: tuple[Path, dict[str, str], dict[str, str]]) -> Path:
    return before_and_after[0]


def test_it_is_a_few_files_of_its_own_and_one_line(
    before_and_after: tuple[Path, dict[str, str], dict[str, str]],
) -> None:
    _, before, after = before_and_after
    new = after.keys() - before.keys()
    assert len(new) <= MOST_FILES and all(Path(file).stem == NAME for file in new)
    changed = [file for file, text in before.items() if after[file] != text]
    assert changed == [new_chapter.NAMES]
    lines = set(after[changed[0]].splitlines()) - set(before[changed[0]].splitlines())
    assert lines == {f'    "{NAME}",'}


@pytest.mark.parametrize("adapter", ["reference", f"support.engines.foreign.{NAME}:{NAME.capitalize()}"])
def test_what_is_right_conforms_as_it_stands(tree: Path, adapter: str) -> None:
    status, said = judged(tree, adapter)
    assert status == 0 and "Conforms (13 of 13 clauses" in said, said


def test_what_is_wrong_in_one_thing_fails_its_clause(tree: Path) -> None:
    status, said = judged(tree, f"support.engines.foreign.{NAME}:{NAME.capitalize()}Wider")
    assert status == 1 and f"explain {NAME.upper()}-3" in said, said


@pytest.mark.slow
def test_the_tests_of_the_copy_pass(tree: Path) -> None:
    """Those that ask something of every chapter, after what is made by script was made again; and the linters."""
    assert python(tree, "tests", "-m", "tools.write_all").returncode == 0
    for command in (("ruff", "check", "."), ("ruff", "format", "--check", "."), ("mypy",)):
        done = python(tree, ".", "-m", *command)
        assert done.returncode == 0, done.stdout
    looking = [f"tests/{name}" for name in LOOKS_AT_CHAPTERS.split()]
    done = python(tree, ".", *("-m", "pytest", "-q", "-x", "-n", "2", "-k"), f"not ({LATER})", *looking)
    assert done.returncode == 0, done.stdout[-4000:]


@pytest.mark.parametrize(
    ("name", "letters", "says"),
    [
        ("ring", None, "already"),
        ("append", None, "already"),
        ("Big", None, "small letters"),
        ("class", None, "no word of Python"),
        ("fresh", "ring", "capital letters"),
        ("fresh", "RING", "ring begin with RING already"),
    ],
)
def test_a_name_that_is_taken_or_no_name_is_refused(name: str, letters: str | None, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        new_chapter.main(Namespace(name=name, letters=letters, into=None))


def test_a_folder_that_is_no_checkout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no checkout"):
        new_chapter.main(Namespace(name=NAME, letters=None, into=str(tmp_path)))
    assert list(tmp_path.iterdir()) == []


def test_files_that_stand_there_are_not_written_over(tmp_path: Path) -> None:
    for file in (new_chapter.NAMES, f"spec/kvspec/chapters/{NAME}.md", "tests/conftest.py"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("mine", encoding="utf-8")
    with pytest.raises(BadInput, match=r"folio\.md exists already"):
        new_chapter.main(Namespace(name=NAME, letters=None, into=str(tmp_path)))
    assert (tmp_path / new_chapter.NAMES).read_text(encoding="utf-8") == "mine"
