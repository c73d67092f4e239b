"""Colours for a terminal: verdicts, and what differs. Words and marks say the same without them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TextIO

RED, GREEN, YELLOW, BOLD, OFF = "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[1m", "\x1b[0m"

STYLES = (
    (RED, r"\b(?:FAIL|CRASH|HANG|OOM|PROTOCOL|XPASS|HARNESS_ERROR)\b|(?<=: )Does not conform"),
    (GREEN, r"(?<=: )Conforms(?! *,)|^ok\b"),
    (YELLOW, r"\b(?:XFAIL|PARTLY_OBSERVED|BY_ADAPTER)\b|^(?:QUICK|PARTIAL) RUN\b"),
    (BOLD, r"^Look first at .*?(?=:)|\bDiagnosis:|In a model:"),
    (RED, r"^! *\d+(?= )|\[found [^\]\n]*\]|(?<=[ |])\[[^\s\]]{0,12}\](?= |$)"),
)
"""The texts to colour, as regular expressions; the last ones are the marks of a drawing."""

_STYLE = re.compile("|".join(f"(?P<s{i}>{pattern})" for i, (_, pattern) in enumerate(STYLES)), re.MULTILINE)


def wanted(stream: TextIO, environment: Mapping[str, str] = os.environ) -> bool:
    """Tell whether to write colours to a stream: to a terminal unless NO_COLOR is set, and to any stream if
    FORCE_COLOR is set."""
    if environment.get("NO_COLOR"):
        return False
    if environment.get("FORCE_COLOR"):
        return True
    return environment.get("TERM") != "dumb" and stream.isatty()


def paint(text: str) -> str:
    """The text with its verdicts and marks coloured. The text must hold no control characters."""
    return _STYLE.sub(lambda m: f"{STYLES[int((m.lastgroup or 's0')[1:])][0]}{m[0]}{OFF}", text)


def write(stream: TextIO, text: str) -> None:
    """Write to a stream, in colour if it shows colours."""
    if not wanted(stream):
        stream.write(text)
    else:
        from kvreports.safe_text import plain  # what adapters say is in the text

        getattr(stream, "write_painted", stream.write)(paint(plain(text)))
    stream.flush()
