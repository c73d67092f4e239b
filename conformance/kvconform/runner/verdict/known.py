"""Known deviations: what an engine is known to do otherwise, read from a file such as `kvconform.toml`.

[[known]]
clause = "RING-1"
model = "window-off-by-one/RingOneWide"
versions = "<1.5"
link = "https://..."
reason = "the window is one row too wide"

A deviation is a model: a planted bug by its id, classes over the list model in a file beside this one, or dialects.
What no model says is known by its outcome: the trace, and what it shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct, field
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from kvconform.runner.verdict import outcomes
from kvspec import notation
from kvspec.contract import Description
from kvspec.errors import BadInput
from kvspec.outside import read_bytes, read_toml
from kvspec.reading.clauses import index
from kvspec.reading.moved_clauses import moved, now
from kvspec.records.run import Failure
from kvspec.registry import DIALECTS

if TYPE_CHECKING:
    from kvspec.records.serving import ServingFailure

FILE = Path("kvconform.toml")
"""The file that is read by default."""

Texts = str | tuple[str, ...]


class KnownDeviation(Struct, frozen=True, forbid_unknown_fields=True):
    """What an engine does otherwise: a model of it, or an outcome."""

    clause: Texts
    """The clause that it breaks first of all, or several. Others fail as known too, where the model says so."""
    reason: str
    model: Texts = ()
    """What the engine does: ids of planted bugs, and classes `FILE.py:NAME`, in files beside this one."""
    dialect: dict[str, int | str] = field(default_factory=dict)
    """Dialects that it follows and does not declare, by chapter and name: `ring.rewind`."""
    shows: str = ""
    """The message of the failure, as reports print it; `*` stands for any text within it."""
    trace: str = ""
    """The failing trace in the compact notation, as reports print it."""
    versions: str = ""
    """Versions of the adapter that deviate, as a PEP 440 specifier; empty for all."""
    adapter: Texts = ""
    """The name of the adapter that deviates, or of several; empty for any."""
    link: str = ""
    """The address of a page about the deviation."""
    sort: str = "known"
    """What sort of deviation it is, in the words of the board: wrong result, after an error, choice, ..."""
    script: str = ""
    """The name of a script beside the file that shows it alone; a draft of a report may have the same name."""
    code: tuple[tuple[str, str], ...] = ()
    """The texts of the files of its models, by name; read with the entry."""

    def __hash__(self) -> int:
        return hash((self.clause, self.reason, self.model, self.shows, self.trace, self.adapter))

    @property
    def clauses(self) -> tuple[str, ...]:
        """The clauses that it names."""
        return texts(self.clause)

    @property
    def models(self) -> tuple[str, ...]:
        """The names of its models."""
        return texts(self.model)

    @property
    def is_model(self) -> bool:
        """Whether it says what the engine does; else it is an outcome."""
        return bool(self.models or self.dialect)

    def names(self, adapter: str) -> bool:
        """Tell whether it is about an adapter of this name."""
        return not texts(self.adapter) or adapter in texts(self.adapter)

    @property
    def because(self) -> str:
        """The reason, and the link where there is one."""
        return f"{self.reason} ({self.link})" if self.link else self.reason

    def is_outcome(self, failure: Failure) -> bool:
        """Tell whether it is this failure: the same difference, where a trace ends as the one that is given.

        Rows and numbers may be others, as in a longer trace; the difference that they make may not.
        """
        if self.is_model or not self.shows:
            return False
        printed = outcomes.matches(self.shows, failure.message)
        if not self.trace:
            return printed and bool(set(self.clauses) & set(failure.clauses))
        same = printed or outcomes.difference(self.shows) == outcomes.difference(failure.message)
        return same and outcomes.alike(self.trace, failure.words, failure.field)


def texts(said: Texts) -> tuple[str, ...]:
    """One text or several, as several; none for an empty text."""
    return (said,) if isinstance(said, str) and said else tuple(said or ())


class UnjudgedEngine(Struct, frozen=True, forbid_unknown_fields=True):
    """An engine that could not be judged, and what stopped it."""

    engine: str
    reason: str


class KnownOfServer(Struct, frozen=True, forbid_unknown_fields=True):
    """What a whole engine is known to do wrong: which failures of its records show it."""

    engine: Texts
    """The name of the engine, or of several, as their records say it."""
    clause: Texts
    """The clauses of SERVE on which its failures are blamed."""
    shows: Texts
    """What is found in them, as reports print it, in one of several forms; `*` stands for any text within it."""
    reason: str
    sort: str
    link: str = ""
    script: str = ""
    """The name of a script in the folder `serving` beside the file, which shows it alone."""
    form: Texts = ""
    """The forms in which the engine does so. Empty for any form."""

    def explains(self, engine: str, failure: ServingFailure, form: str) -> bool:
        """Tell whether a failure of an engine in a form is this one."""
        mine = engine in texts(self.engine) and failure.clause in texts(self.clause)
        mine = mine and (not self.form or form in texts(self.form))
        return mine and any(outcomes.matches(text, line) for text in texts(self.shows) for line in failure.found)


class UnmetChapter(Struct, frozen=True, forbid_unknown_fields=True):
    """A chapter that too few released engines were judged by, and why."""

    chapter: str
    reason: str


class _File(Struct, forbid_unknown_fields=True):
    known: list[KnownDeviation] = field(default_factory=list)
    served: list[KnownOfServer] = field(default_factory=list)
    unjudged: list[UnjudgedEngine] = field(default_factory=list)
    unmet: list[UnmetChapter] = field(default_factory=list)


def declared(adapter: Description) -> tuple[KnownDeviation, ...]:
    """Read the known deviations that an adapter declares itself. Raises BadInput: they must be as tight as those of
    a file, and a process that is judged may name no file of code."""
    entries = [msgspec.convert(dict(said), KnownDeviation) for said in adapter.known]
    return tuple(_checked(k, f"{adapter.name} declares known[{i}]", None) for i, k in enumerate(entries))


def read(file: Path | None) -> tuple[KnownDeviation, ...]:
    """Read the known deviations of a file; by default of `FILE`, if it exists. Raises BadInput."""
    entries, folder = _load(file).known, (file or FILE).parent
    return tuple(_checked(entry, f"{file or FILE}: known[{i}]", folder) for i, entry in enumerate(entries))


def unjudged(file: Path | None) -> tuple[UnjudgedEngine, ...]:
    """Read the engines that could not be judged, from the same file. Raises BadInput."""
    return tuple(_load(file).unjudged)


def unmet(file: Path | None) -> dict[str, str]:
    """Read why a chapter has too few engines, from the same file, by its name. Raises BadInput."""
    return {u.chapter: u.reason for u in _load(file).unmet}


def served(file: Path | None) -> tuple[KnownOfServer, ...]:
    """Read what whole engines are known to do wrong, from the same file. Raises BadInput."""
    entries = tuple(_load(file).served)
    for i, entry in enumerate(entries):
        if loose := [form for form in texts(entry.shows) if not form.strip("* ")]:
            raise BadInput(f"{file or FILE}: served[{i}]: shows {loose[0]!r} fits any failure; say what is found")
    return entries


def _load(file: Path | None) -> _File:
    if file is None and not FILE.is_file():
        return _File()
    path = file or FILE
    document = read_toml(path, "a file of known deviations")
    try:
        return msgspec.convert(document, _File)
    except msgspec.ValidationError as e:
        from kvreports.json_file import refusal  # most files can be read

        raise BadInput(f"{path}: {refusal(str(e), '').lstrip('.: ')}; entries begin with [[known]]") from None


def _checked(entry: KnownDeviation, where: str, folder: Path | None) -> KnownDeviation:
    """The entry with its trace as reports print it, and the texts of its models."""
    for clause in entry.clauses:
        if clause in moved():
            raise BadInput(f"{where}: {clause} is {now(clause)} now, which says it for every kind; write that")
        if clause not in index():
            raise BadInput(f"{where}: there is no clause {clause!r:.60}; see `kvconform list clauses`")
    if not entry.reason or not entry.clauses:
        raise BadInput(f"{where}: give the clause and the reason")
    if entry.code:
        raise BadInput(f"{where}: unknown field 'code'")
    _demand_one_form(entry, where)
    try:
        SpecifierSet(entry.versions)
        trace = notation.sentence(notation.from_sentence(entry.trace)) if entry.trace else ""
    except InvalidSpecifier:
        raise BadInput(f"{where}: versions {entry.versions!r:.60} is no specifier such as '>=1.4,<1.6'") from None
    except BadInput as e:
        raise BadInput(f"{where}: trace: {e}") from None
    return msgspec.structs.replace(entry, trace=trace, code=_code(entry, where, folder))


def _demand_one_form(entry: KnownDeviation, where: str) -> None:
    """Refuse an entry that is neither a model nor an outcome, or both; and an outcome that is any."""
    outcome = bool(entry.shows or entry.trace)
    if entry.is_model == outcome:
        raise BadInput(
            f"{where}: give either what the engine does (model or dialect), or the outcome (trace and shows) as "
            "the report prints them"
        )
    for name in entry.dialect:
        if name.rpartition(".")[2] not in DIALECTS:
            raise BadInput(f"{where}: there is no dialect {name!r:.60}; write its chapter too, as in ring.rewind")
    if outcome:
        outcomes.demand_tight(entry.shows, entry.trace, where)


def _code(entry: KnownDeviation, where: str, folder: Path | None) -> tuple[tuple[str, str], ...]:
    """The texts of the files of its models, which are in a folder; None refuses files."""
    files = dict.fromkeys(name.rpartition(":")[0] for name in entry.models if ".py:" in name)
    if files and folder is None:
        raise BadInput(f"{where}: model {entry.models[0]!r:.60} is code: write the entry into {FILE} beside it")
    try:
        return tuple((name, read_bytes((folder or Path()) / name, "a model").decode()) for name in files)
    except (BadInput, UnicodeDecodeError) as e:
        raise BadInput(f"{where}: model: {e}") from None


def applying(known: Iterable[KnownDeviation], adapter: Description) -> tuple[KnownDeviation, ...]:
    """Give the known deviations of this adapter in this version, those that it declares itself behind the others.
    Raises BadInput for a version that none fits, and where `declared` does."""
    of_file = tuple(k for k in known if k.names(adapter.name) and _fits(k.versions, adapter))
    return of_file + declared(adapter)


def _fits(versions: str, adapter: Description) -> bool:
    if not versions:
        return True
    try:
        return SpecifierSet(versions).contains(Version(adapter.version), prereleases=True)
    except InvalidVersion:
        said = f"{adapter.name} describes its version as {adapter.version!r:.40}"
        raise BadInput(f"known deviations of versions {versions}: {said}, which is no PEP 440 version") from None


def explanations(known: Iterable[KnownDeviation], failure: Failure) -> dict[str, str]:
    """Give the clauses of a failure, each with the reason, if it is a known outcome."""
    found = next((k for k in known if k.is_outcome(failure)), None)
    return dict.fromkeys(failure.clauses, found.because) if found else {}


def reasons(known: Iterable[KnownDeviation]) -> dict[str, str]:
    """Give the clauses that known deviations name, each with all the reasons."""
    entries = list(known)
    clauses = dict.fromkeys(clause for entry in entries for clause in entry.clauses)
    return {c: "; ".join(k.because for k in entries if c in k.clauses) for c in clauses}


def gone(known: Mapping[str, str], failures: Iterable[Failure]) -> dict[str, str]:
    """Give those of `reasons` that explain no failure of any clause. One deviation may break several clauses, and
    which of them are blamed may differ from run to run."""
    shown = {reason for failure in failures for reason in failure.known.values()}
    return {clause: why for clause, why in known.items() if not any(reason in why for reason in shown)}
