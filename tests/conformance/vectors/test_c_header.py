"""The C header: a right ring passes its traces, and each planted bug is found by them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from kvconform import cli
from kvconform.vectors import c_header
from kvspec.errors import BadInput

EXAMPLE = Path(__file__).parents[3] / "examples/c_header"
needs_gcc = pytest.mark.skipif(not shutil.which("gcc"), reason="there is no gcc")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example with its header, as `make` finds them."""
    found = tmp_path_factory.mktemp("c_header")
    for name in ("ring.c", "Makefile"):
        shutil.copy(EXAMPLE / name, found)
    assert cli.main(["vectors", "c-header", "--out", str(found / "kvconform_vectors.h")]) == 0
    return found


def judged(folder: Path, *flags: str, edit: tuple[str, str] = ("", "")) -> tuple[int, list[str]]:
    """Build the ring with these flags, after an edit of its text; run it."""
    text = (EXAMPLE / "ring.c").read_text(encoding="utf-8")
    assert edit[0] in text
    (folder / "edited.c").write_text(text.replace(*edit), encoding="utf-8")
    build = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", *flags, "-o", "edited", "edited.c"]
    subprocess.run(build, cwd=folder, check=True)
    ran = subprocess.run(["./edited"], cwd=folder, capture_output=True, text=True, timeout=60)
    return ran.returncode, ran.stdout.splitlines()


@needs_gcc
def test_a_right_ring_passes_every_trace(folder: Path) -> None:
    status, lines = judged(folder)
    (count,) = {int(n) for n in lines[-1].split() if n.isdigit() and n != "0"}
    assert status == 0 and count > 200 and lines == [f"{count} traces of {count} judged, 0 went otherwise"]


@needs_gcc
@pytest.mark.parametrize(
    ("edit", "shown"),
    [
        (("#ifndef BUG", "#ifdef BUG"), "ring step=1 window=2: append 2; rewind 1; append 2"),
        (("last - r->window + 1", "last - r->window"), "query 1 sees other rows"),
        (("offset > r->offset) return 1", "offset > r->offset) return 0"), "done, expected to be refused"),
        (("r->offset += n", "r->offset += n > 0 ? n : 1"), "offset 1, expected 0"),
    ],
    ids=["cursor stays behind", "window one too wide", "rewind is not checked", "no rows count"],
)
def test_a_planted_bug_is_found(folder: Path, edit: tuple[str, str], shown: str) -> None:
    status, lines = judged(folder, edit=edit)
    assert status == 1 and any(shown in line for line in lines), lines[-20:]


@needs_gcc
def test_what_an_engine_does_not_have_is_not_judged(folder: Path) -> None:
    status, (last,) = judged(folder, "-Wno-unused-function", edit=("ring_rewind, ring_reset", "0, 0"))
    judged_, all_ = (int(n) for n in last.replace(",", "").split() if n.isdigit() and n != "0")
    assert status == 0 and 20 < judged_ < all_


def test_chapters_that_row_numbers_cannot_tell_are_refused(tmp_path: Path) -> None:
    assert c_header.header(["growing"]).count("    KVCONFORM_TRACE(") < c_header.header().count(
        "    KVCONFORM_TRACE("
    )
    with pytest.raises(BadInput, match="no C header has the chapter 'page'; there are growing, ring"):
        c_header.header(["page"])
    with pytest.raises(BadInput, match="cannot be written"):
        c_header.write(tmp_path / "none" / "x.h")
