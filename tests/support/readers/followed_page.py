"""Follows a page word for word: writes its files, runs its commands in order, looks for what it says is printed.

A block of Python begins with the name of its file, and where it goes: `# cache.py`, `# cache.py, at the end`,
`# cache.py, in place of trim`. A block of text has lines that the command before it prints.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from support import fakes

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
STATUS = re.compile(r"  # exit status (\d)$")


def follow(page: Path, folder: Path) -> list[str]:
    """Follow the page in an empty folder; gives what each of its commands printed."""
    printed: list[str] = []
    for language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "text":
            missing = [line for line in text.splitlines() if line.strip() not in printed[-1]]
            assert not missing, f"{missing} is not printed:\n{printed[-1]}"
        elif language == "sh":
            for line in text.splitlines():
                folder = _shell(line, folder, printed)
        else:
            _write(text, folder)
    return printed


def _shell(line: str, folder: Path, printed: list[str]) -> Path:
    """Run one line; gives the folder that the next one runs in."""
    word, _, rest = line.partition(" ")
    if word == "mkdir":
        (folder / rest).mkdir()
    elif word == "cd":
        return folder / rest
    else:
        printed.append(_run(line, folder))
    return folder


def _write(text: str, folder: Path) -> None:
    """Write a file, or the part of one that the block has."""
    head, _, body = text.partition("\n")
    name, _, where = head.removeprefix("# ").partition(", ")
    file = folder / name
    assert file.parent.is_dir(), file
    old = file.read_text(encoding="utf-8") if where else ""
    if where.startswith("in place of "):
        method = re.escape(where.removeprefix("in place of "))
        body, count = re.subn(
            rf"^    def {method}\(.*?(?=^    def |\Z)", lambda _: f"{body}\n", old, flags=re.M | re.S
        )
        assert count == 1, f"{head}: {count} such methods"
    elif where:
        assert where == "at the end", head
        body = f"{old}\n{body}"
    file.write_text(body if where else text, encoding="utf-8")


def _run(line: str, folder: Path) -> str:
    """Run one command of the page; gives its output."""
    status = STATUS.search(line)
    program, *arguments = shlex.split(line, comments=True)
    assert program in ("kvconform", "python3")
    done = subprocess.run(
        [sys.executable, *(["-m", "kvconform"] if program == "kvconform" else []), *arguments],
        cwd=folder,
        env=os.environ | fakes.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == int(status[1] if status else 0), f"{line}\n{done.stdout}\n{done.stderr}"
    return done.stdout
