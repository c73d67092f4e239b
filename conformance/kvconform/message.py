"""Messages to the person at the terminal: a line each on standard error, so that standard output is the result."""

from __future__ import annotations

import sys


def tell(line: str, command: str = "") -> None:
    """Write `kvconform: line` to standard error, or `kvconform COMMAND: line`, at once."""
    name = f"kvconform {command}" if command else "kvconform"
    sys.stderr.write(f"{name}: {line}\n")
    sys.stderr.flush()
