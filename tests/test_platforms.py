"""What docs/platforms.md promises: names that a system lacks stand in few files; versions and metadata agree."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import kvconform
from kvconform import cli
from kvconform.version import SUITE_VERSION, require
from kvspec import SPEC_VERSION
from kvspec.errors import BadInput
from kvspec.registry import CHAPTERS
from tools import for_pypi

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FOLDERS = ("spec/kvspec", "reference/kvref", "adapters/kvadapters", "conformance", "reports/kvreports")

POSIX = re.compile(
    r"^ *(?:import|from) (?:fcntl|resource|pwd|grp|termios|pty|tty|syslog)\b"
    r"|\bos\.(?:fork|setsid|getuid|geteuid|killpg|getpgid|wait|waitpid|WIF\w+|sysconf|getloadavg|nice|uname)\b"
    r"|\bsignal\.SIG(?:ALRM|VTALRM|HUP|KILL|USR1|USR2|PIPE|XFSZ|QUIT|STOP|CONT)\b"
    r"|start_new_session|preexec_fn",
    re.M,
)
"""What Windows lacks."""

LINUX = re.compile(r'"/proc|"/sys/|\bprctl\b|\bos\.sched_\w+|\bos\.memfd_create|\bos\.pidfd_open')
"""What macOS lacks."""

RECORD, PROFILE = "conformance/kvconform/runner/record/provenance.py", "conformance/kvprofile/commands/profile.py"
POSIX_FILES = {"conformance/kvconform/bugs/time_limit.py", "conformance/kvconform/cli.py", RECORD, PROFILE}
LINUX_FILES = {RECORD, "conformance/kvprofile/budget.py", "spec/kvspec/contract/timing.py"}
"""Each looks first whether the path is there."""


def holding(names: re.Pattern[str]) -> set[str]:
    """The files outside the worker and the workshop that have one of these names."""
    files = [p for folder in FOLDERS for p in (ROOT / folder).rglob("*.py")]
    found = {str(p.relative_to(ROOT)) for p in files if names.search(p.read_text(encoding="utf-8"))}
    return {f for f in found if "/worker/" not in f and "/kvworkshop/" not in f}


def test_what_a_system_lacks_is_used_only_where_it_is_listed() -> None:
    assert (holding(POSIX), holding(LINUX)) == (POSIX_FILES, LINUX_FILES)


@pytest.mark.parametrize("text", ["import fcntl", "    os.fork()", "signal.SIGKILL", "f(preexec_fn=x)"])
def test_the_lint_finds_what_windows_lacks(text: str) -> None:
    assert POSIX.search(text) and not POSIX.search("import os; signal.SIGINT; os.getpid(); import resources")


def test_the_packages_for_adapters_import_nothing_that_windows_lacks() -> None:
    lacking = (
        "import os, sys\nfor name in ('fcntl', 'resource', 'pwd', 'grp', 'termios'): sys.modules[name] = None\n"
    )
    lacking += "for name in ('fork', 'setsid', 'getuid', 'killpg', 'wait', 'sysconf'): delattr(os, name)\n"
    asked = "import kvspec.contract, kvspec.notation, kvref.caches.ring, kvadapters.update, kvspec.reading.clauses"
    ran = subprocess.run([sys.executable, "-c", lacking + asked], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_on_windows_a_command_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(cli.os, "name", "nt")
    assert cli.main(["list"]) == 4 and "run it in WSL" in capsys.readouterr().err


def test_versions_agree() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert kvconform.__version__ == PROJECT["version"] == cited["version"]
    assert kvconform.__version__.startswith(f"{SUITE_VERSION}.")


def test_the_metadata_name_every_python_that_is_promised() -> None:
    versions = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if "Python :: 3." in c]
    assert versions == ["3.11", "3.12", "3.13", "3.14"] and PROJECT["requires-python"] == ">=3.11"


def test_a_run_may_require_a_spec(capsys: pytest.CaptureFixture) -> None:
    for taken in (SPEC_VERSION, SPEC_VERSION.partition(".")[0]):
        require(taken)
    for other in ("3", "0.1", "2.", ""):
        with pytest.raises(BadInput, match="is required, and this kvconform has"):
            require(other)
    assert cli.main(["run", "reference", "--require-spec", "3"]) == 2
    assert "spec 3 is required" in capsys.readouterr().err


def test_the_readme_has_only_absolute_links_on_pypi() -> None:
    page = for_pypi.absolute((ROOT / "README.md").read_text(encoding="utf-8"), "https://example.org/x/blob/main")
    assert "](https://example.org/x/blob/main/docs/engine.md)" in page
    assert re.findall(r"\]\((?!https?://|#)[^)]*\)", page) == []
    with pytest.raises(ValueError, match=r"docs/nowhere.md, which is no file"):
        for_pypi.absolute("[a](docs/nowhere.md)", "https://example.org")


def test_a_copy_for_pypi_has_the_addresses_and_is_refused_where_one_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout, out = tmp_path / "checkout", tmp_path / "out"
    for name in ("README.md", "pyproject.toml", "CITATION.cff", "CHANGELOG.md", "docs/a.md", "demo.svg"):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text("[a](docs/a.md) ![b](demo.svg)\n[project.scripts]\n" if name[0] != "C" else "")
    for name in ("spec/kvspec/chapters/a.md", "spec/README.md"):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text("")
    for words in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *words], cwd=checkout, check=True)
    monkeypatch.setattr(for_pypi, "ROOT", checkout)
    asked, base = ["--base", "https://h.example/o/k/blob/main", "--out", str(out)], "https://h.example/o/k"
    assert for_pypi.main(asked) == 0
    assert f"[a]({base}/blob/main/docs/a.md) ![b]({base}/raw/main/demo.svg)" in (out / "README.md").read_text()
    project = tomllib.loads((out / "pyproject.toml").read_text().partition("\n")[2])["project"]
    assert project["urls"]["Changelog"] == f"{base}/blob/main/CHANGELOG.md" and project["scripts"] == {}
    cited = yaml.safe_load((out / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited == {"url": f"{base}/blob/main/spec/kvspec/chapters"}
    with pytest.raises(SystemExit):
        for_pypi.main(asked)


def test_the_readme_says_how_many_chapters_there_are() -> None:
    assert f"There are {len(CHAPTERS)} chapters" in (ROOT / "README.md").read_text(encoding="utf-8")
