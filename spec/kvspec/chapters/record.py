"""What the record of a chapter holds: the kind it opens, its operations, what is observed of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from kvspec.chapters.arguments import Argument
from kvspec.geometry import Config

Holds = Literal["number", "numbers", "truth", "text", "counts"]


@dataclass(frozen=True)
class OperationRecord:
    """An operation of a trace: its arguments, required ones first, and one sentence for the schema."""

    name: str
    says: str
    arguments: tuple[Argument, ...] = ()
    rows: bool = False
    """Whether rows are handed to it."""
    queries: bool = False
    """Whether queries are handed to it, in f32; it then gives an output."""
    config: bool = False
    """Whether it is asked with a kind and a config, in place of the sizes that stand in the trace."""
    makes: tuple[str, ...] = ()
    """The arguments that hold names which it binds."""
    uses: tuple[str, ...] = ()
    """The arguments that hold names which it uses."""
    names: str = ""
    """What those names name."""
    needs: tuple[str, ...] = ()
    """The chapters it needs beside its own. An argument can need one too: see `Argument`."""


@dataclass(frozen=True)
class Value:
    """A value of an answer, and one sentence for the schema. Any but a truth, a text or counts can be null."""

    name: str
    says: str
    holds: Holds = "number"
    count: int | None = None
    """How many numbers a list has, where that is fixed."""
    form: str = ""
    """What to say that it must be, where its numbers have names."""


@dataclass(frozen=True)
class Tensor:
    """An array of an answer; one of keys and one of values where it is a pair."""

    name: str
    pair: bool = True


@dataclass(frozen=True)
class Column:
    """A column of worked examples: its heading, which is a pattern; how its cells are read, see `kvspec.reading`;
    and the observation that it speaks of, where that is called otherwise."""

    heading: str
    reads: str = "number"
    of: str = ""
    storage: bool = False
    """Whether it speaks of storage, so that it holds at that level alone."""
    grown: bool = False
    """Whether it tells how storage grew, so that of a cache it holds only where that grows as the spec says."""


@dataclass(frozen=True)
class Kind:
    """What a chapter lets an adapter open."""

    needs: tuple[str, ...] = ()
    """The fields of a config that it must be given. Other kinds have not got them, but for those that name them."""
    may: tuple[str, ...] = ()
    """The fields that it may be given beside them."""
    sequence: bool = False
    """Whether it is a cache of one sequence, or of a uniform batch, which appends and rewinds."""
    also: tuple[str, ...] = ()
    """The operations of other chapters that it has."""
    tried: Config = field(default_factory=Config)
    """A config that an adapter which claims it opens: what it does not claim is tried on this."""
    begin: tuple[str, ...] = ()
    """The operations that come before the first append."""
    ownership: str = ""
    """The clause that leaves arrays to their caller, whatever it does to them."""
    bits: str = ""
    """The clause by which rows are kept to the bit."""


@dataclass(frozen=True)
class Probe:
    """Operations of which the last is the chapter's own, and the kinds they are tried on; every kind by default."""

    operations: tuple[str, ...]
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Chapter:
    """A part of the spec that an adapter can claim."""

    letters: str
    """What the ids of its clauses begin with."""
    kind: Kind | None = None
    """What it lets an adapter open; it is called like the chapter."""
    on: tuple[str, ...] = ()
    """Where it opens nothing: the kinds that have its operations."""
    speaks_of: tuple[str, ...] = ()
    """The kinds that its clauses speak of where they name none; left out, its own kind or else every kind."""
    operations: tuple[OperationRecord, ...] = ()
    probes: tuple[Probe, ...] = ()
    """Attempts at what an adapter that does not claim it must refuse."""
    observe: tuple[str, ...] = ()
    """What a session is told to observe, after every step, of an adapter that claims it at any level."""
    values: tuple[Value, ...] = ()
    tensors: tuple[Tensor, ...] = ()
    columns: tuple[Column, ...] = ()
