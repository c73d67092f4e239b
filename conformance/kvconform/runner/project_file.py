"""The settings that a project keeps for its own runs: the table `[tool.kvconform]` of its `pyproject.toml`.

[tool.kvconform]
adapter = "kvadapter_my_engine:ring"
chapters = ["ring", "mask"]
known = "tests/kvconform.toml"
quick = true

They are read in the folder in which a command starts. What the command line says counts more.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kvspec.errors import BadInput
from kvspec.outside import did_you_mean, read_toml

FILE, TABLE = "pyproject.toml", "tool.kvconform"

MOST = 1 << 40
"""The largest number that a setting may be."""


class Key(NamedTuple):
    """What a setting may be: a text, texts, a switch, or a number from `least` on. `option` is that of `run`."""

    holds: type
    option: str
    least: float = 0


KEYS = {
    "adapter": Key(str, ""),
    "command": Key(list, "--"),
    "chapters": Key(list, "--chapter"),
    "clauses": Key(list, "--clause"),
    "known": Key(str, "--known"),
    "report": Key(str, "--report"),
    "quick": Key(bool, "--quick"),
    "visible": Key(bool, "--visible"),
    "traces": Key(int, "--traces"),
    "seed": Key(int, "--seed"),
    "processes": Key(int, "--processes", 1),
    "memory": Key(int, "--memory", 1),
    "deadline": Key(float, "--deadline", 1e-3),
    "minutes": Key(float, "--minutes", 1e-3),
    "require-spec": Key(str, "--require-spec"),
}
"""Every key of the table."""

WORDS = {str: "a text", list: "a list of texts", bool: "true or false", int: "a whole number", float: "a number"}

PATHS = ("known", "report")
"""Keys that are paths, from the folder of the file on."""


def read(folder: Path) -> dict[str, Any]:
    """Give the settings of the project in this folder; none where it has no such table. Raises BadInput for a file
    that is no TOML, for unknown keys, and for values that they cannot have."""
    path = folder / FILE
    if not path.is_file():
        return {}
    tables = read_toml(path, "a project's settings")
    tool = tables.get("tool")
    said = tool.get("kvconform", {}) if isinstance(tool, Mapping) else {}
    if not isinstance(said, Mapping):
        raise BadInput(f"{path}: [{TABLE}] must be a table")
    return _checked(said, str(path))


def _checked(said: Mapping[str, Any], path: str) -> dict[str, Any]:
    for name, value in said.items():
        if name not in KEYS:
            hint = did_you_mean(name, KEYS) or f"; known: {', '.join(KEYS)}"
            raise BadInput(f"{path}: [{TABLE}] unknown key {name!r:.60}{hint}")
        if not _fits(value, KEYS[name]):
            least = KEYS[name].least
            beyond = f" from {least:g} on" if KEYS[name].holds in (int, float) else ""
            words = WORDS[KEYS[name].holds]
            raise BadInput(f"{path}: [{TABLE}] {name} must be {words}{beyond}, is {value!r:.60}")
    if "adapter" in said and "command" in said:
        raise BadInput(f"{path}: [{TABLE}] give either adapter or command: a run judges one")
    return dict(said)


def _fits(value: Any, key: Key) -> bool:
    if key.holds in (int, float):
        number = type(value) is int or (key.holds is float and type(value) is float)
        return number and key.least <= value <= MOST
    if key.holds is list:
        return isinstance(value, list) and bool(value) and all(isinstance(v, str) and v for v in value)
    return type(value) is key.holds and value != ""


def words(settings: Mapping[str, Any]) -> list[str]:
    """Write settings as the options of `kvconform run`; a command comes last, behind `--`."""
    given: list[str] = []
    for name, value in settings.items():
        option = KEYS[name].option
        if name in ("adapter", "command"):
            continue
        if isinstance(value, bool):
            given += [option] * value
        else:
            given += [f"{option}={each}" for each in (value if isinstance(value, list) else [value])]
    return given


def told(settings: Mapping[str, Any]) -> str:
    """Say what was taken from the file, in a line."""
    parts = [f"{name} {_told(value)}" if value is not True else name for name, value in settings.items()]
    return f"from {FILE}: {', '.join(parts)}"


def _told(value: Any) -> str:
    text = " ".join(value) if isinstance(value, list) else str(value).lower() if value is False else str(value)
    return text if len(text) <= 100 else f"{text[:100]}..."
