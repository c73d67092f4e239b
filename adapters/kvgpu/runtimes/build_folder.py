"""Private folders for compiled code, kept from run to run."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path


def folder(name: str) -> Path:
    """Give a private temporary folder of that name, so that earlier compilations are reused.

    A folder that another user can write to is not used, because code in it would be run.
    """
    kept = Path(tempfile.gettempdir()) / f"kvconform-{name}-{os.getuid()}"
    with suppress(OSError):
        kept.mkdir(mode=0o700, exist_ok=True)
        state = kept.lstat()
        if stat.S_ISDIR(state.st_mode) and state.st_uid == os.getuid() and not state.st_mode & 0o022:
            return kept
    return Path(tempfile.mkdtemp(prefix=f"kvconform-{name}-"))
