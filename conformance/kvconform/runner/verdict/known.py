"""Known deviations: failures of an engine that are expected, read from a file such as `kvconform.toml`.

[[known]]
clause = "STORE-14"
shows = "layer 1 holds row c; expected none"
versions = ">=1.4,<1.6"
link = "https://..."
reason = "zero skips the last layer; fixed upstream in 1.6"
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct, field
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from kvreports.json_file import refusal
from kvspec import notation
from kvspec.bounded_file import read_bytes
from kvspec.contract import Description
from kvspec.errors import BadInput
from kvspec.reading.clauses import index
from kvspec.records.run import Failure

FILE = Path("kvconform.toml")
"""The file that is read by default."""


class KnownDeviation(Struct, frozen=True, forbid_unknown_fields=True):
    """A failure that is expected: of one clause or several, told by its message or by its trace."""

    clause: str | tuple[str, ...]
    reason: str
    shows: str = ""
    """Text that the failure's message contains; `*` stands for any text, such as letters of rows and numbers."""
    trace: str = ""
    """The failing trace in the compact notation, as reports print it: a failure that can be shortened to this
    trace, and then differs in the same observable, is this one."""
    versions: str = ""
    """Versions of the adapter that deviate, as a PEP 440 specifier; empty for all."""
    adapter: str | tuple[str, ...] = ""
    """The name of the adapter that deviates, or of several; empty for any."""
    link: str = ""
    """The address of a page about the deviation."""
    sort: str = "known"
    """What sort of deviation it is, in the words of the board: wrong result, after an error, choice, ..."""
    script: str = ""
    """The name of a script beside the file that shows it alone; a draft of a report may have the same name."""

    @property
    def clauses(self) -> tuple[str, ...]:
        """The clauses that it breaks."""
        return (self.clause,) if isinstance(self.clause, str) else self.clause

    def names(self, adapter: str) -> bool:
        """Tell whether it is about an adapter of this name."""
        return not self.adapter or adapter in ((self.adapter,) if isinstance(self.adapter, str) else self.adapter)

    @property
    def because(self) -> str:
        """The reason, and the link where there is one."""
        return f"{self.reason} ({self.link})" if self.link else self.reason

    def explains(self, clause: str, failure: Failure) -> bool:
        """Tell whether the failure, of this clause, is the one that is known."""
        return clause in self.clauses and (self._tells(failure) or failure.words == self.trace)

    def _tells(self, failure: Failure) -> bool:
        pattern = ".*".join(map(re.escape, self.shows.split("*")))
        return bool(self.shows) and re.search(pattern, failure.message, re.DOTALL) is not None


class UnjudgedEngine(Struct, frozen=True, forbid_unknown_fields=True):
    """An engine that could not be judged, and what stopped it."""

    engine: str
    reason: str


class _File(Struct, forbid_unknown_fields=True):
    known: list[KnownDeviation] = field(default_factory=list)
    unjudged: list[UnjudgedEngine] = field(default_factory=list)


def read(file: Path | None) -> tuple[KnownDeviation, ...]:
    """Read the known deviations of a file; by default of `FILE`, if it exists. Raises BadInput."""
    entries = _load(file).known
    return tuple(_checked(entry, f"{file or FILE}: known[{i}]") for i, entry in enumerate(entries))


def unjudged(file: Path | None) -> tuple[UnjudgedEngine, ...]:
    """Read the engines that could not be judged, from the same file. Raises BadInput."""
    return tuple(_load(file).unjudged)


def _load(file: Path | None) -> _File:
    if file is None and not FILE.is_file():
        return _File()
    path = file or FILE
    text = read_bytes(path, "a file of known deviations")
    try:
        return msgspec.convert(tomllib.loads(text.decode()), _File)
    except msgspec.ValidationError as e:
        raise BadInput(f"{path}: {refusal(str(e), '').lstrip('.')}") from None
    except (ValueError, RecursionError) as e:
        raise BadInput(f"{path}: not complete TOML ({e})") from None


def _checked(entry: KnownDeviation, where: str) -> KnownDeviation:
    """The entry with its trace as reports print it."""
    for clause in entry.clauses:
        if clause not in index():
            raise BadInput(f"{where}: there is no clause {clause!r:.60}; see `kvconform list clauses`")
    if not entry.reason or not (entry.shows or entry.trace):
        raise BadInput(f"{where}: give the reason, and shows or trace, by which the failure is recognised")
    try:
        SpecifierSet(entry.versions)
        trace = notation.sentence(notation.from_sentence(entry.trace)) if entry.trace else ""
    except InvalidSpecifier:
        raise BadInput(f"{where}: versions {entry.versions!r:.60} is no specifier such as '>=1.4,<1.6'") from None
    except BadInput as e:
        raise BadInput(f"{where}: trace: {e}") from None
    return msgspec.structs.replace(entry, trace=trace)


def applying(known: Iterable[KnownDeviation], adapter: Description) -> tuple[KnownDeviation, ...]:
    """Give the known deviations of this adapter in this version. Raises BadInput for a version that none fits."""
    return tuple(k for k in known if k.names(adapter.name) and _fits(k.versions, adapter))


def _fits(versions: str, adapter: Description) -> bool:
    if not versions:
        return True
    try:
        return SpecifierSet(versions).contains(Version(adapter.version), prereleases=True)
    except InvalidVersion:
        said = f"{adapter.name} describes its version as {adapter.version!r:.40}"
        raise BadInput(f"known deviations of versions {versions}: {said}, which is no PEP 440 version") from None


def explanations(known: Iterable[KnownDeviation], failure: Failure) -> dict[str, str]:
    """Give the clauses of a failure that known deviations explain, each with the reason."""
    entries = list(known)
    found = {c: next((k.because for k in entries if k.explains(c, failure)), "") for c in failure.clauses}
    return {clause: reason for clause, reason in found.items() if reason}


def reasons(known: Iterable[KnownDeviation]) -> dict[str, str]:
    """Give the clauses that known deviations break, each with all the reasons."""
    entries = list(known)
    clauses = dict.fromkeys(clause for entry in entries for clause in entry.clauses)
    return {c: "; ".join(k.because for k in entries if c in k.clauses) for c in clauses}


def gone(known: Mapping[str, str], failures: Iterable[Failure]) -> dict[str, str]:
    """Give those of `reasons` that explain no failure of any clause. One deviation may break several clauses, and
    which of them are blamed may differ from run to run."""
    shown = {reason for failure in failures for reason in failure.known.values()}
    return {clause: why for clause, why in known.items() if not any(reason in why for reason in shown)}
