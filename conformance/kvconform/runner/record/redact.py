"""Removes from published records where they were made: absolute paths, and the name of the host."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TypeVar

from kvreports.safe_text import mapped

T = TypeVar("T")

_PATH = re.compile(r"""(?<![\w./~-])/(?!/)(?:[^\s/:"'`<>|,;()\[\]]+/)+([^\s/:"'`<>|,;()\[\]]*)""")
"""An absolute path of two parts or more, and its last part. A path of one part, such as `/dev`, is not private."""

SHORTEST = 4
"""Letters of the shortest name of a host that is looked for: a shorter one may be part of anything."""


def published(value: T) -> T:
    """A copy of a record, or of any JSON, in which every text is public.

    Each absolute path is replaced by its last part, and the name of this host by `host`.
    """
    return mapped(value, _publisher())


def _publisher() -> Callable[[str], str]:
    """What makes a text public. Looks up folders and host once, for tens of thousands of texts."""
    folders, host = [f"{folder}/" for folder in _folders()], _host()

    def public(text: str) -> str:
        for folder in folders:
            text = text.replace(folder, "")
        return host.sub("host", _PATH.sub(_last, text))

    return public


def _folders() -> list[str]:
    """The working folder and the home, if they exist. Their names may hold what ends a path in a text."""
    found = list[str]()
    for folder in (Path.cwd, Path.home):
        with suppress(OSError, RuntimeError):
            found.append(str(folder()))
    return [folder for folder in found if folder != "/"]


def _last(path: re.Match[str]) -> str:
    return path[1] or path[0].rstrip("/").rpartition("/")[2]


@cache
def _host() -> re.Pattern[str]:
    """The name of this host, long and short, as a word of its own. A name of letters alone may be any word."""
    name = socket.gethostname()
    names = [n for n in (name, name.partition(".")[0]) if len(n) >= SHORTEST and not n.isalpha()]
    return re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, names))})(?![\w-])" if names else r"(?!)")
