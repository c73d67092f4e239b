"""The C header, the package for npm and the crate: a right ring passes, and each planted bug is found."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from _pytest.mark import ParameterSet

import kvconform
from kvconform import cli
from kvconform.vectors import files
from kvconform.vectors.languages import c_header, packages
from kvconform.vectors.languages.numbered_traces import told
from kvspec.errors import BadInput

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
CC = ("-Wall", "-Wextra", "-Werror", "-o", "ring", "ring.c")


class Language(NamedTuple):
    """An example: where it is, what writes its traces and where, its ring, what builds and what runs it."""

    example: str
    action: str
    out: str
    ring: str
    tools: tuple[str, ...]
    commands: tuple[tuple[str, ...], ...]


LANGUAGES = {
    "c99": Language(
        "c_header", "c-header", "kvconform_vectors.h", "ring.c", ("gcc",), (("gcc", "-std=c99", *CC), ("./ring",))
    ),
    "c++11": Language(
        "c_header", "c-header", "kvconform_vectors.h", "ring.c", ("g++",),
        (("g++", "-x", "c++", "-std=c++11", *CC), ("./ring",)),
    ),
    "ctest": Language(
        "c_header", "c-header", "kvconform_vectors.h", "ring.c", ("cmake", "ctest", "gcc"),
        (
            ("cmake", "-S", ".", "-B", "build", f"-DKVCONFORM={sys.executable};-m;kvconform"),
            ("cmake", "--build", "build"),
            ("ctest", "--test-dir", "build", "--verbose"),
        ),
    ),
    "npm": Language(
        "npm_vectors", "npm", "node_modules/kvconform-vectors", "ring.js", ("node",), (("node", "--test"),)
    ),
    "crate": Language(
        "crate_vectors", "crate", "kvconform-vectors", "src/lib.rs", ("cargo",),
        (("cargo", "test", "--offline", "--", "--nocapture"),),
    ),
}  # fmt: skip
SLOW = ("c++11", "ctest", "crate")
"""What compiles for seconds."""

REPEATS = [("npm", bug) for bug in ("window one too wide", "rewind is not checked", "no rows count")]
"""What other bugs and `c99` show too."""

CURSOR = "ring window=2: append 2; rewind 1; append 2"
BUGS = {
    "ring.c": {
        "cursor stays behind": ("#ifndef BUG", "#ifdef BUG", CURSOR),
        "window one too wide": ("last - r->window + 1", "last - r->window", "query 1 sees other rows"),
        "rewind is not checked": ("offset) return 1", "offset) return 0", "done, expected to be refused"),
        "no rows count": ("r->offset += n", "r->offset += n > 0 ? n : 1", "offset 1, expected 0"),
    },
    "ring.js": {
        "cursor stays behind": ("!process.env.BUG", "false", CURSOR),
        "window one too wide": (
            "end - this.window)",
            "end - this.window - 1)",
            "query 1 sees rows 0, 1; expected 1",
        ),
        "rewind is not checked": ("appended) return false", "appended) return", "done, expected to be refused"),
        "no rows count": ("+= rows.length;", "+= rows.length || 1;", "offset 1, expected 0"),
        "an error": ("this.fresh = rows.length", "rows.size()", "step 1: threw TypeError"),
        "another name": ("  append(rows) {", "  appends(rows) {", "step 1: threw TypeError"),
    },
    "src/lib.rs": {
        "cursor stays behind": ('cfg!(not(feature = "bug"))', "false", CURSOR),
        "window one too wide": (
            "saturating_sub(window)",
            "saturating_sub(window + 1)",
            "rows [0, 1]; expected [1]",
        ),
        "rewind is not checked": ("return Err(NoSuchOffset)", "return Ok(())", "done, expected to be refused"),
        "no rows count": ("offset += rows.len()", "offset += rows.len().max(1)", "offset 1, expected 0"),
        "an error": ("self.fresh = rows.len()", "self.fresh = rows[0] as usize", "the cache panicked"),
    },
}
"""In each ring what is edited and what shows it."""

WITHOUT_REWIND = {
    "c99": ("    return kvconform_check", "    engine.rewind = NULL;\n    return kvconform_check"),
    "npm": ("  rewind(offset) {", "  rewound(offset) {"),
    "crate": ("impl Cache for Ring {", "impl Cache for Ring {\n const REWINDS: bool = false;"),
}

Judge = Callable[[str, str, str], tuple[int, str]]


def rows(names: list[tuple[str, ...]]) -> list[ParameterSet]:
    """Parameters that begin with a language: skipped where its tools are missing, slow where it compiles long."""
    return [pytest.param(*row, marks=_marks(*row), id=" ".join(row)) for row in names]


def _marks(name: str, bug: str = "") -> list[pytest.MarkDecorator]:
    missing = [tool for tool in LANGUAGES[name].tools if shutil.which(tool) is None]
    skip = pytest.mark.skipif(bool(missing), reason=f"{' and '.join(missing)} cannot be found")
    return [skip, pytest.mark.slow] if name in SLOW or (name, bug) in REPEATS else [skip]


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    """Build and run an example after an edit of its ring; give the last status and all that was printed."""
    folders = dict[str, Path]()

    def judged(name: str, old: str = "", new: str = "") -> tuple[int, str]:
        language = LANGUAGES[name]
        if name not in folders:
            folders[name] = tmp_path_factory.mktemp("example") / language.example
            shutil.copytree(EXAMPLES / language.example, folders[name], ignore=tracked_alone)
            assert cli.main(["vectors", language.action, "--out", str(folders[name] / language.out)]) == 0
        text = (EXAMPLES / language.example / language.ring).read_text(encoding="utf-8")
        assert old in text
        (folders[name] / language.ring).write_text(text.replace(old, new), encoding="utf-8")
        *builds, last = language.commands
        for build in builds:
            subprocess.run(build, cwd=folders[name], check=True, capture_output=True, timeout=300)
        ran = subprocess.run(last, cwd=folders[name], capture_output=True, text=True, timeout=300)
        return ran.returncode, ran.stdout + ran.stderr

    return judged


def tracked_alone(folder: str, names: list[str]) -> list[str]:
    """What a build left in a checkout is not copied."""
    built = {"build", "ring", "kvconform_vectors.h", "node_modules", "kvconform-vectors", "target", "Cargo.lock"}
    return sorted(built & set(names))


@pytest.mark.parametrize("name", rows([(name,) for name in LANGUAGES]))
def test_a_right_ring_passes_every_trace(judge: Judge, name: str) -> None:
    status, said = judge(name, "", "")
    every = len(told().traces)
    assert every > 200 and f"{every} traces of {every} judged, 0 went otherwise" in said and status == 0, said


@pytest.mark.parametrize(
    ("name", "bug"), rows([(name, bug) for name in LANGUAGES for bug in BUGS[LANGUAGES[name].ring]])
)
def test_a_planted_bug_is_found(judge: Judge, name: str, bug: str) -> None:
    old, new, shown = BUGS[LANGUAGES[name].ring][bug]
    status, said = judge(name, old, new)
    assert status != 0 and shown in said, said


@pytest.mark.parametrize("name", rows([(name,) for name in WITHOUT_REWIND]))
def test_what_an_engine_does_not_have_is_not_judged(judge: Judge, name: str) -> None:
    status, said = judge(name, *WITHOUT_REWIND[name])
    ((judged, every, wrong),) = re.findall(r"(\d+) traces of (\d+) judged, (\d+) went otherwise", said)
    assert status == 0 and 20 < int(judged) < int(every) and wrong == "0"


@pytest.mark.parametrize("name", rows([("npm",)]))
def test_each_cache_that_was_opened_is_closed(judge: Judge, name: str) -> None:
    says = 'console.log("opened");', '  close() { console.log("closed"); }'
    status, said = judge(
        name, "    this.window = window;\n  }", f"    this.window = window;{says[0]}\n  }}\n{says[1]}"
    )
    assert status == 0 and said.count("closed") == said.count("opened") > 200


def test_a_package_says_its_version_its_licence_and_what_it_has() -> None:
    npm, crate = packages.npm(), packages.crate()
    package, cargo = json.loads(npm["package.json"]), tomllib.loads(crate["Cargo.toml"])["package"]
    for said in (package, cargo):
        assert (said["name"], said["version"], said["license"]) == (
            "kvconform-vectors",
            kvconform.__version__,
            "CC0-1.0",
        )
    assert package["type"] == "module" and {path.removeprefix("./") for path in package["exports"].values()} <= set(
        npm
    )
    assert all(told().said in text for text in (npm["index.js"], crate["src/lib.rs"], c_header.header()))
    assert not any("@SAID@" in text or "@VERSION@" in text for text in (npm | crate).values())


def test_the_page_of_commands_says_how_many_traces_there_are() -> None:
    said = f"with {len(told().traces)} traces of growing caches and rings"
    assert said in EXAMPLES.with_name("commands.md").read_text(encoding="utf-8")


def test_rows_in_a_form_are_not_told_in_row_numbers() -> None:
    assert any("form=" in v["words"] for v in files.read(files.FROZEN / "mutants-growing.json")["vectors"])
    assert not any("form=" in trace.words for trace in told().traces)


def test_chapters_that_row_numbers_cannot_tell_are_refused(tmp_path: Path) -> None:
    assert 0 < len(told(["growing"]).traces) < len(told().traces)
    with pytest.raises(BadInput, match="row numbers cannot tell the chapter 'page'; there are growing, ring"):
        packages.crate(["page"])
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="cannot be written"):
        packages.write_package(tmp_path / "file" / "x", packages.npm(["ring"]))
