"""The command that replays a failure: with the words of its trace, or with its file if the words do not say
everything."""

from __future__ import annotations

import re
import shlex

from msgspec import UNSET

from kvspec.records.run import Failure, Record

FOLDER, AFTER = "failures", "-after"
"""The folder of traces inside a report's folder, and the ending of the names of predecessors."""

LONGEST = 300
"""Characters of a trace that a command holds."""


def command(failure: Failure, record: Record) -> str:
    """The command, with the adapter named as the `run` named it: by name, or as the command behind `--`. Files are
    named from the folder of the report. An engine that was judged by its log cannot be asked again: its log is."""
    if log := record.selection.get("log"):
        level = " --visible" if record.selection["level"] == "visible" else ""
        return f"kvconform check {shlex.quote(str(log))}{level}"
    own, before = failure.words, "" if failure.after is UNSET else failure.after.words
    if not in_words(failure):
        own, before = file(failure, record), file(failure, record, AFTER) if before else ""
    run = record.command
    what = shlex.quote(own) + (f" --after {shlex.quote(before)}" if before else "")
    adapter = shlex.join(run) if run[:1] == ["--"] else f"--adapter {shlex.join(run)}"
    return f"kvconform replay {what} --draw {adapter}"


def in_words(failure: Failure) -> bool:
    """Whether the words are short and say the whole trace: for a mask of an odd shape they say only the shape."""
    words = [failure.words] if failure.after is UNSET else [failure.words, failure.after.words]
    return all(len(text) <= LONGEST and not re.search(r"\b(bool|f32)\[", text) for text in words)


def file(failure: Failure, record: Record, suffix: str = "") -> str:
    """Where the report's folder has the trace of a failure; with AFTER, the one that has to run before it."""
    number = next(i for i, f in enumerate(record.failures, 1) if f is failure)
    words = re.sub(r"[^A-Za-z0-9-]+", "-", (failure.clauses or ["trace"])[0])[:60]
    return f"{FOLDER}/{number:02d}-{words}{suffix}.json"
