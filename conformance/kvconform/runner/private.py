"""Takes out of what people publish where it was made: absolute paths, and the name of the host."""

from __future__ import annotations

import re
import socket
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

T = TypeVar("T")

_PATH = re.compile(r"""(?<![\w./~-])/(?!/)(?:[^\s/:"'`<>|,;()\[\]]+/)+([^\s/:"'`<>|,;()\[\]]*)""")
"""An absolute path of two parts or more, and its last part: `/dev` says nothing about anybody."""

SHORTEST = 4
"""Letters of the shortest name of a host that is looked for: a shorter one may be part of anything."""


def public(text: str) -> str:
    """The text with the last part of each absolute path in its place, and `host` for the name of this one."""
    for folder in _folders():
        text = text.replace(f"{folder}/", "")
    return _host().sub("host", _PATH.sub(_last, text))


def published(value: T) -> T:
    """A copy of a record, or of any JSON, in which every text is public."""
    made: Any = value
    if isinstance(value, str):
        made = public(value)
    elif isinstance(value, Struct):
        made = type(value)(**{n: published(getattr(value, n)) for n in value.__struct_fields__})
    elif isinstance(value, dict):
        made = {key: published(v) for key, v in value.items()}
    elif isinstance(value, list | tuple):
        made = [published(v) for v in value]
    return made  # type: ignore[no-any-return]


def _folders() -> list[str]:
    """The working folder and the home, where there are such: their names may hold what ends a path in a text."""
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
