"""The action and the reusable workflow of GitHub: their own shell steps run, in the folder of a small engine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from kvconform import cli
from support.running import judging

ROOT = Path(__file__).parents[2]
ACTION = ROOT / ".github/actions/judge/action.yml"
WORKFLOW = ROOT / ".github/workflows/judge.yml"
OUTER = "python -m pip install"
SETTINGS = '[tool.kvconform]\nadapter = "kvadapter_small:ring"\nquick = true\nclauses = ["RING-1"]\nprocesses = 1\n'


def steps(file: Path) -> list[dict[str, Any]]:
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    found = document["runs"]["steps"] if file == ACTION else document["jobs"]["judge"]["steps"]
    return [step for step in found if "run" in step]


@pytest.mark.parametrize("file", [ACTION, WORKFLOW], ids=["action", "workflow"])
def test_no_input_is_written_into_a_script_and_each_that_is_used_is_declared(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    document = yaml.safe_load(text)
    inputs = document["inputs"] if file == ACTION else document[True]["workflow_call"]["inputs"]  # YAML's `on`
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == set(inputs)
    for step in steps(file):
        assert "${{" not in step["run"], "an input in a script is code of whoever gives it"
        assert set(re.findall(r"\$\{?([A-Z]+)\b", step["run"])) <= {
            *step["env"],
            "GITHUB_STEP_SUMMARY",
        }


def test_the_action_installs_its_own_checkout_by_default() -> None:
    document = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
    default = document["inputs"]["install"]["default"].replace("${{ github.action_path }}", str(ACTION.parent))
    assert Path(default).resolve() == ROOT
    assert steps(ACTION)[0]["run"] == 'python -m pip install --quiet "$INSTALL"'


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh package of a small engine, whose pyproject.toml says what is judged."""
    monkeypatch.chdir(tmp_path)
    assert cli.main(["new-adapter", "small"]) == 0
    folder = tmp_path / "kvadapter-small"
    with (folder / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write("\n" + SETTINGS)
    return folder


def run(file: Path, folder: Path, **inputs: str) -> tuple[int, str]:
    """Run the steps but the installation as GitHub does: the first that fails ends the job, but for `always()`."""
    summary, status, told = folder / "summary.md", 0, ""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    common = {**os.environ, **judging.fakes.environment(), "PATH": path, "GITHUB_STEP_SUMMARY": str(summary)}
    for step in steps(file):
        if OUTER in step["run"] or (status and step.get("if") != "always()"):
            continue
        names = {name: re.findall(r"inputs\.([\w-]+)", value)[0] for name, value in step["env"].items()}
        own = {name: inputs.get(of, "kvconform-report" * (of == "report")) for name, of in names.items()}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=folder,
            env=common | own,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        status, told = status or done.returncode, told + done.stdout + done.stderr
    return status, told


def spoil(folder: Path) -> None:
    """Plant a bug: the ring's window is one row too wide."""
    file = next(folder.glob("kvadapter_*/engine.py"))
    text = file.read_text(encoding="utf-8")
    wrong = text.replace("(column > query -", "(column >= query -").replace("self.window - 1)", "self.window)")
    assert wrong != text, text
    file.write_text(wrong, encoding="utf-8")


def test_a_sound_engine_passes_and_its_report_is_in_the_summary(engine: Path) -> None:
    status, told = run(ACTION, engine)
    assert status == 0 and "from pyproject.toml: adapter kvadapter_small:ring" in told, told
    assert "RING-1" in (engine / "summary.md").read_text() and "::error" not in told


@pytest.mark.slow
def test_a_planted_bug_fails_it_is_annotated_and_is_found_again_by_the_baseline(engine: Path) -> None:
    assert run(WORKFLOW, engine)[0] == 0
    good = engine / "good.json"
    good.write_bytes((engine / "kvconform-report" / "record.json").read_bytes())
    spoil(engine)
    status, told = run(ACTION, engine, arguments="--no-quick --traces 2")
    assert status == 1 and "::error title=RING-1" in told and (engine / "summary.md").is_file()
    status, told = run(ACTION, engine, baseline=str(good))
    assert status == 1 and "Something broke anew" in told
    bad = engine / "bad.json"
    bad.write_bytes((engine / "kvconform-report" / "record.json").read_bytes())
    status, told = run(ACTION, engine, baseline=str(bad))
    assert status == 0 and "Nothing broke anew" in told, "what was broken before does not fail it"
    assert run(ACTION, engine, adapter="kvadapter_small:spiral")[0] == 2
