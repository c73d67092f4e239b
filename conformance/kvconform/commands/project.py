"""What a command takes from `[tool.kvconform]`: all that its command line does not say."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kvconform.message import tell
from kvconform.runner import project_file

READERS = ("run", "smoke")
"""The commands that read the file."""

OF_SMOKE = ("adapter", "command")
OF_WHOLE_ENGINE = ("report", "seed")
"""The keys that `smoke` takes, and a run on a whole engine."""

INSTEAD = {"processes": ("on",), "adapter": ("adapter", "process"), "command": ("adapter", "process")}
"""Options that take the place of a key, where they have another name."""


def completed(
    parser: ArgumentParser, given: Sequence[str], options: Namespace, process: tuple[str, ...]
) -> tuple[Namespace, tuple[str, ...]]:
    """Give the options, and the command behind `--`, with what the file of this folder adds. It says what that is.

    `given` are the words from which `options` were read. Raises BadInput.
    """
    settings = _taken(project_file.read(Path()), options, given, process)
    if not settings:
        return options, process
    if not getattr(options, "quiet", False):
        tell(project_file.told(settings))
    name, *rest = given
    adapter = [settings["adapter"]] if "adapter" in settings else []
    again = parser.parse_args([name, *project_file.words(settings), *rest, *adapter])
    return again, tuple(settings.get("command", process))


def _taken(
    settings: dict[str, Any], options: Namespace, given: Sequence[str], process: tuple[str, ...]
) -> dict[str, Any]:
    """The settings that the command has, and that the command line leaves open."""
    whole = bool(getattr(options, "server", None) or getattr(options, "engine", None))
    own = OF_SMOKE if options.command == "smoke" else OF_WHOLE_ENGINE if whole else tuple(project_file.KEYS)
    said = {word.partition("=")[0] for word in given if word.startswith("--")}
    said |= {name for name, there in (("adapter", options.adapter), ("process", process)) if there}
    return {name: value for name, value in settings.items() if name in own and not _is_said(name, said)}


def _is_said(name: str, said: set[str]) -> bool:
    option = project_file.KEYS[name].option
    others = INSTEAD.get(name, ())
    return bool({option, option.replace("--", "--no-"), *others, *(f"--{other}" for other in others)} & said)
