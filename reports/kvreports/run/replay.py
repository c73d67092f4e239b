"""The command that replays a failure: by the words of its trace, or where these do not say it all by its file."""

from __future__ import annotations

import re
import shlex

from msgspec import UNSET

from kvspec.records.run import Failure

LONGEST = 300
"""Characters of a trace that a command holds."""


def command(failure: Failure, run: list[str]) -> str:
    """The command, with the adapter named as the `run` named it: by name, or as the command behind `--`."""
    what = shlex.quote(failure.words) if in_words(failure) else file(failure)
    what += "" if failure.after is UNSET else f" --after {shlex.quote(failure.after.words)}"
    adapter = shlex.join(run) if run[:1] == ["--"] else f"--adapter {shlex.join(run)}"
    return f"kvconform replay {what} --draw {adapter}"


def in_words(failure: Failure) -> bool:
    """Whether the words are short, and say the trace: of a mask of an odd shape they say no more than the shape."""
    words = [failure.words] if failure.after is UNSET else [failure.words, failure.after.words]
    return all(len(text) <= LONGEST and not re.search(r"\b(bool|f32)\[", text) for text in words)


def file(failure: Failure) -> str:
    """The file that holds the trace, where the words do not say it."""
    words = re.findall(r"[a-z0-9]+", " ".join([*failure.clauses[:1], failure.source]).lower())
    return f"{'-'.join(words)[:60] or 'trace'}.json"
