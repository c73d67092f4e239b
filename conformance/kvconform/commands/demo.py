"""`kvconform demo`: judges a small ring with one bug, and opens the page that shows it."""

from __future__ import annotations

import os
import sys
import tempfile
import webbrowser
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from kvconform.commands import broken_ring
from kvconform.commands.options import COMMANDS
from kvconform.message import tell

ADAPTER = f"{broken_ring.__name__}:ring"

BROKEN = 1
"""The exit status of a run that finds a broken clause, as the demo must."""


def main(options: Namespace) -> int:
    """Judge the broken ring and open its page, or print where it is. Return 0 if the bug was found."""
    folder = Path(options.report or tempfile.mkdtemp(prefix="kvconform-demo-"))
    tell(f"the ring with the bug: {broken_ring.__file__}")
    run = import_module("kvconform.commands.run")  # as the command line does it
    status = int(run.main(_run_options(folder)))
    page = folder / "report.html"
    if status == BROKEN and not options.no_open and interactive(os.environ):
        webbrowser.open(page.resolve().as_uri())
    return 0 if status == BROKEN else status or 3


def _run_options(folder: Path) -> Namespace:
    """The options of the run, as its command line would give them."""
    parser = ArgumentParser()
    COMMANDS["run"].add_arguments(parser)
    given = [ADAPTER, "--quick", "--traces", "2", "--processes", "1", "--report", str(folder)]
    return parser.parse_args(given, Namespace(process=()))


def interactive(environment: Mapping[str, str]) -> bool:
    """Tell whether there is a screen: without one, a text browser would take over the terminal."""
    screen = sys.platform in ("darwin", "win32") or {"DISPLAY", "WAYLAND_DISPLAY"} & environment.keys()
    return bool(screen) and sys.stdout.isatty() and not environment.get("CI")
