"""The journal of a run or of a profile. Each check or case is written as one line when it ends, so an interrupted
run keeps what it has."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from kvconform.message import tell
from kvconform.runner.verdict.tally import Tally, from_json
from kvspec.errors import BadInput
from kvspec.outside import read_json

NAME = "journal.jsonl"


class Journal:
    """Writes lines to `folder/journal.jsonl`; nowhere if there is no folder."""

    def __init__(self, folder: Path | None) -> None:
        self._file: TextIO | None = None
        if folder is not None:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                (folder / NAME).unlink(missing_ok=True)  # it may be a link to what is not ours
                self._file = (folder / NAME).open("x", encoding="utf-8")
            except OSError as e:
                raise BadInput(f"report folder {folder}: cannot be written ({e.strerror}); name another") from None

    def write(self, event: str, **said: Any) -> None:
        """Write one event to the disk before the next check begins. If it cannot be written, as on a full disk, say
        so and write no more: the run goes on, and its table is printed."""
        if self._file is None:
            return
        try:
            self._file.write(json.dumps({"event": event, **said}) + "\n")
            self._file.flush()
        except OSError as e:
            tell(f"{self._file.name}: cannot be written ({e.strerror}); the run goes on without its journal")
            self.close()

    def close(self) -> None:
        """Write nothing more."""
        if self._file is not None:
            with suppress(OSError):  # what could not be written before cannot be written now
                self._file.close()
            self._file = None


def read(path: Path) -> tuple[dict[str, Any], Tally]:
    """The start of a run, and all that it judged, from a journal that may end in the middle. Raises BadInput.

    If a check was judged twice, the second time counts.
    """
    start = dict[str, Any]()
    for event in _events(path):
        if event.get("event") == "start":
            start = event
        elif event.get("event") == "end":
            start = start | {"about": event["about"]}
    if not start:
        raise BadInput(f"{path}: not the journal of a run")
    return start, _total(_tallies(path).values())


def _tallies(path: Path) -> dict[str, Tally]:
    """What each check showed. Raises BadInput."""
    found = dict[str, Tally]()
    for event in _events(path):
        if event.get("event") == "judged":
            try:
                found[f"{event['test']}"] = from_json(event["tally"])
            except (KeyError, ValueError) as e:
                raise BadInput(f"{path}: not the journal of a run ({type(e).__name__}: {e!s:.200})") from None
    return found


def is_of_profile(path: Path) -> bool:
    """Tell whether a file is the journal of a profile."""
    if path.suffix != ".jsonl" or not path.is_file():
        return False
    return next(_events(path), {}).get("event") == "profile"


def read_profile(path: Path) -> dict[str, Any]:
    """Read the record of a profile from its journal, which may end in the middle. Raises BadInput."""
    first, *rest = _events(path)
    try:
        cases = [e for e in rest if e.get("event") in PARTS_OF_PROFILE]
        found: dict[str, Any] = {**first["record"], **(cases[-1]["so_far"] if cases else {})}
        for event, name in PARTS_OF_PROFILE.items():
            found[name] = [e["case"] for e in cases if e["event"] == event]
        return found
    except (KeyError, TypeError) as e:
        raise BadInput(f"{path}: not the journal of a profile ({type(e).__name__}: {e})") from None


PARTS_OF_PROFILE = {"measured": "measurements", "left out": "skipped"}
"""The fields of a profile's record that hold the cases of an event."""


def failed(folder: Path) -> tuple[str, ...]:
    """The checks that failed in the run whose journal is in a folder, without known deviations. Raises BadInput."""
    return tuple(check for check, tally in _tallies(folder / NAME).items() if tally.broken)


def _total(tallies: Iterable[Tally]) -> Tally:
    total = Tally()
    for tally in tallies:
        total.merge(tally)
    return total


def _events(path: Path) -> Iterator[dict[str, Any]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as e:
        writes = "`kvconform run --report DIR` writes one"
        raise BadInput(f"{path}: cannot be read: {e.strerror}; {writes}") from None
    except UnicodeDecodeError as e:
        raise BadInput(f"{path}: not the journal of a run ({e})") from None
    for line in lines:
        try:
            event = read_json(line)
        except BadInput as e:
            raise BadInput(f"{path}: {e}") from None
        except (ValueError, RecursionError):
            return  # the line that was being written when the run was cut
        if isinstance(event, dict):
            yield event
