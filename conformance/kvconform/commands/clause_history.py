"""When the sentence of each clause was written and changed, from the history of a git repository."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kvreports.site.content import Change

FOLDER = "spec/kvspec/chapters"
_RULE = re.compile(r"^\*\*(?P<id>[A-Z]+-[1-9]\d*)\*\* (?P<rule>\(.+?)(?=\n\n|\Z)", re.M | re.S)


class _Commit(NamedTuple):
    hash: str
    day: str
    subject: str


def history(repository: Path) -> dict[str, list[Change]]:
    """The changes of each clause, the oldest first; none if the folder lacks the whole history."""
    if _git(repository, "rev-parse", "--is-shallow-repository") != "false\n":
        return {}
    found: dict[str, list[Change]] = {}
    before: dict[str, str] = {}
    texts: dict[str, dict[str, str]] = {}
    for commit in _commits(repository):
        now: dict[str, str] = {}
        for blob in _blobs(repository, commit.hash):
            if blob not in texts:
                texts[blob] = rules(_git(repository, "cat-file", "blob", blob))
            now |= texts[blob]
        for id_, what in _differing(before, now):
            found.setdefault(id_, []).append(Change(commit.day, what, commit.subject))
        before = now
    return found


def rules(text: str) -> dict[str, str]:
    """The rule of each clause of a chapter, in one line."""
    return {m["id"]: " ".join(m["rule"].split()) for m in _RULE.finditer(text)}


def _differing(before: dict[str, str], now: dict[str, str]) -> Iterator[tuple[str, str]]:
    for id_ in {**before, **now}:
        if before.get(id_) != now.get(id_):
            yield id_, "new" if id_ not in before else "withdrawn" if id_ not in now else "its wording changed"


def _commits(repository: Path) -> list[_Commit]:
    lines = _git(repository, "log", "--reverse", "--format=%H%x09%cs%x09%s", "--", FOLDER).splitlines()
    return [_Commit(*line.split("\t", 2)) for line in lines]


def _blobs(repository: Path, commit: str) -> list[str]:
    lines = _git(repository, "ls-tree", commit, f"{FOLDER}/").splitlines()
    return [line.split()[2] for line in lines if line.endswith(".md")]


def _git(repository: Path, *words: str) -> str:
    """The output of git; empty without git or a repository."""
    try:
        done = subprocess.run(["git", *words], cwd=repository, capture_output=True, check=False)
    except OSError:
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""
