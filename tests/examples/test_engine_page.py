"""`ENGINE.md`, followed word for word: its files are written and its commands run, in order."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support import fakes
from tools.floors import ROOT

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
STATUS = re.compile(r"  # exit status (\d)$")


@pytest.mark.slow  # eight commands, five of which judge a cache
def test_the_page_is_followed_to_its_end(tmp_path: Path) -> None:
    folder, ran = tmp_path, list[str]()
    for language, text in BLOCK.findall((ROOT / "ENGINE.md").read_text(encoding="utf-8")):
        if language != "sh":
            file = folder / text.splitlines()[0].removeprefix("# ")
            assert file.parent.is_dir(), file
            file.write_text(text, encoding="utf-8")
            continue
        for line in text.splitlines():
            if line.startswith("cd "):
                folder = folder / line.removeprefix("cd ")
            else:
                ran.append(_run(line, folder))
    assert len(ran) == 8
    assert all("Conforms (" in out for out in ran[1:3])
    assert '"ring": {"level": "visible", "without": ["ask", "free", "rewind", "view"]}' in ran[3]
    assert "kvconform replay 'ring kv_heads=1 window=1: append 2' --draw" in ran[4]
    assert "query 1 sees a b; expected b" in ran[6]
    assert "Conforms, except for known deviations" in ran[7]


def _run(line: str, folder: Path) -> str:
    """Run one command of the page; give its output."""
    status = STATUS.search(line)
    program, *arguments = shlex.split(line, comments=True)
    assert program == "kvconform"
    done = subprocess.run(
        [sys.executable, "-m", "kvconform", *arguments],
        cwd=folder,
        env=os.environ | fakes.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == int(status[1] if status else 0), f"{line}\n{done.stdout}\n{done.stderr}"
    return done.stdout
