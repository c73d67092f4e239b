"""The record of a chapter: the kind it opens, its operations, their arguments, and what is observed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

Holds = Literal["number", "numbers", "truth", "text", "counts"]

LARGEST = 1 << 31
"""Bound on the magnitude of whole numbers in a trace, unless one has its own bound."""

LARGEST_SIZE = 1 << 17
"""Bound on a size in the config that a trace begins with, unless it has its own bound."""

METERED = ("host_to_device", "device_to_host", "device_to_device", "launches", "allocations", "synchronisations")
"""The counts of a meter: bytes copied to, from and on the device, launches, allocations, and waits."""

REQUIRED = object()
"""The default of an argument that has none."""


class Part(Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a record."""


class Argument(Part, frozen=True):
    """One argument of an operation: its name, what it holds, its bounds, and its default."""

    name: str
    holds: str = "number"
    low: int = -LARGEST
    high: int = LARGEST
    default: Any = REQUIRED
    needs: str = ""
    """The chapter that it needs if it is given and is not the default."""
    kinds: tuple[str, ...] = ()
    """The allowed words if it holds a kind of cache."""

    @property
    def required(self) -> bool:
        """Tell whether the operation is malformed without it."""
        return self.default is REQUIRED


class OperationRecord(Part, frozen=True):
    """An operation of a trace: its arguments, required ones first, and one sentence for the schema."""

    name: str
    says: str
    arguments: tuple[Argument, ...] = ()
    rows: bool = False
    """Whether it takes rows."""
    layered: bool = False
    """Whether rows are made for every layer of a cache, if it names none. Others take rows of one layer."""
    queries: bool = False
    """Whether it takes queries, in f32; it then gives an output."""
    config: bool = False
    """Whether the wire sends it a kind and a config instead of the sizes in the trace."""
    makes: tuple[str, ...] = ()
    """The arguments with names that it makes."""
    uses: tuple[str, ...] = ()
    """The arguments with names that it uses."""
    names: str = ""
    """The sort of thing those names stand for."""
    unbounded: bool = False
    """Whether nothing bounds what it costs."""
    needs: tuple[str, ...] = ()
    """The chapters it needs beside its own. An argument can need one too: see `Argument`."""
    only: tuple[str, ...] = ()
    """The kinds that have it, where others that its chapter is on have not."""


class Ability(Part, frozen=True):
    """Something that some engines have and others lack, beside the operations: each of those is an ability too.

    A trace needs it if one of its operations has an argument of this `value`, by default any but the argument's
    default. It also needs it if a mask has such a part, or if a config has a size above 1 or of this value. Where
    operations are named as well, one of them must be done to a cache of such a config. A trace needs it too if an
    operation of its chapter exercises one of its clauses. One that no trace needs is an observable.
    """

    name: str
    says: str
    operations: tuple[str, ...] = ()
    argument: str = ""
    value: int | None = None
    like: str = ""
    """The pattern of the values that it is about, as they are written: of a text, or of a size that may be left
    out."""
    mask: str = ""
    config: str = ""
    clauses: tuple[str, ...] = ()
    """What the list model cites where an operation takes it: some abilities follow from what a cache holds, and not
    from what an operation says."""


class Dialect(Part, frozen=True):
    """Something that engines do differently on purpose, and that a claim declares: a word, or a whole number."""

    name: str
    says: str
    words: tuple[str, ...]
    default: int | str
    see: tuple[str, ...]
    """The clauses that say what it changes."""
    because: str
    """Why engines differ, in a few words."""
    least: int | None = None
    """The smallest number, if it may be a number."""
    hides: Mapping[str, tuple[str, ...]] = {}
    """Clauses that nothing shows of a cache that declares a value, by that value."""
    answers: Mapping[str, tuple[str, ...]] = {}
    """Observables that the adapter makes up for its engine, by a value that says so."""
    traces: tuple[str, ...] = ()
    """Traces in words that show what other sources do not: these know the default alone."""

    def allows(self, value: object) -> bool:
        """Tell whether a claim may say this."""
        number = type(value) is int and self.least is not None and value >= self.least
        return number or (isinstance(value, str) and value in self.words)


class Value(Part, frozen=True):
    """A value of an answer, and one sentence for the schema. Any but a truth, a text or counts can be null."""

    name: str
    says: str
    holds: Holds = "number"
    count: int | None = None
    """How many numbers a list has, if that is fixed."""
    form: str = ""
    """How to describe it in messages, if its numbers have names."""


class Tensor(Part, frozen=True):
    """An array of an answer; one of keys and one of values if it is a pair."""

    name: str
    pair: bool = True
    after: tuple[str, ...] = ()
    """The operations whose answers may hold it."""
    always: bool = False
    """Whether every answer may."""
    numbered: bool = False
    """Whether its name says of which layer it is, by number, as that of a pair may."""


class Column(Part, frozen=True):
    """A column of worked examples. Its heading is a pattern. `reads` says how its cells are read, see
    `kvspec.reading`. `of` is the observation that it shows, if that has another name."""

    heading: str
    reads: str = "number"
    of: str = ""
    storage: bool = False
    """Whether it shows storage, so that it is compared only at that level."""
    grown: bool = False
    """Whether it shows how storage grew, so that it is compared only for caches that grow as the spec says."""


class Kind(Part, frozen=True):
    """What a chapter lets an adapter open."""

    needs: tuple[str, ...] = ()
    """The config fields that it requires. Only kinds that name a field have it."""
    may: tuple[str, ...] = ()
    """The config fields that it may have besides."""
    sequence: bool = False
    """Whether it is a cache of one sequence, or of a uniform batch, with append and rewind."""
    also: tuple[str, ...] = ()
    """The operations of other chapters that it has."""
    layer_axis: bool = False
    """Whether arrays have an axis of layers in front. Without it the rows of several layers stand in a row."""
    grows_with_drafts: bool = False
    """Whether drafts that were not kept may have made it grow, so that its capacity is not the spec's until it is
    freed."""
    forms_at_sizes: bool = False
    """Whether caches of many heads, and of many sequences, are judged in each sort of form."""
    answers: tuple[str, ...] = ()
    """The arrays that any answer of its caches may hold."""
    tried: Mapping[str, Any] = {}
    """Fields of a config that an adapter which claims it opens: what it does not claim is tried on this."""
    begin: tuple[str, ...] = ()
    """The operations that come before the first append."""
    dialects: tuple[str, ...] = ()
    """The dialects of other chapters that its caches may declare too."""
    unchanged: Mapping[str, str] = {}
    """By operation, the clause that says that a refused one changes nothing, where that is one of its own."""
    general: tuple[str, ...] = ()
    """The clauses of the general chapter that bind it."""
    opens: str = ""
    """The clause that says which configs are refused; all others are opened."""
    ownership: str = ""
    """The clause that leaves arrays to their caller, whatever it does to them."""
    bits: str = ""
    """The clause by which rows are kept to the bit."""


class Field(Part, frozen=True):
    """A field of a config that not every kind has: a whole number if it has neither words nor a pattern."""

    name: str
    says: str
    words: tuple[str, ...] = ()
    """The allowed words, the simplest one first."""
    pattern: str = ""
    """The pattern that its whole text has."""
    high: int = LARGEST_SIZE
    """The largest number that a trace may begin with; 1 for what is either said or not."""
    reached: bool = False
    """Whether numbers in operations reach it, so that a smaller one makes these smaller too."""
    most: bool = False
    """Whether it bounds how many rows there may be."""
    layered: bool = False
    """Whether it is a text with a part for each layer, separated by commas."""


class Origin(Part, frozen=True):
    """The engines that a chapter was written from: their names, the file that was read, and each feature of theirs
    with the clauses about it (`GROW-1..4 RING-2`)."""

    name: str
    file: str
    features: Mapping[str, str]


class Probe(Part, frozen=True):
    """Operations, the last one the chapter's own, and the kinds they are tried on; every kind by default."""

    operations: tuple[str, ...]
    kinds: tuple[str, ...] = ()


class Chapter(Part, frozen=True):
    """A part of the spec that an adapter can claim."""

    letters: str
    """The letters that begin its clause ids."""
    says: str
    """What it speaks of, for the reading guide."""
    origin: Origin | None = None
    """What it was written from, unless `feature_table.toml` says it."""
    unmeasured: Mapping[str, tuple[str, ...]] = {}
    """Its operations that no workload of `kvprofile` measures, by the reason."""
    fields: tuple[Field, ...] = ()
    """The fields of a config that it brings. Kinds of other chapters may name them too."""
    kind: Kind | None = None
    """The kind that it lets an adapter open, named like the chapter."""
    rooms: Mapping[str, tuple[str, ...]] = {}
    """The packages that have a module of its name, by the last word of their names; and what other code looks up in
    each module. See `kvspec.registry`."""
    laws: Mapping[str, tuple[str, ...]] = {}
    """The kinds of cache that its laws are drawn on, and the clauses that are drawn on each."""
    checks: Mapping[str, tuple[str, ...]] = {}
    """What else judges it, by the source of the traces: the names of its explorations (`explore`), and of the sizes
    that its large traces meet (`large`). `each kind` stands for the names of all kinds."""
    on: tuple[str, ...] = ()
    """If it opens nothing: the kinds that have its operations."""
    speaks_of: tuple[str, ...] = ()
    """The kinds that its clauses apply to if they name none; by default its own kind, or else every kind."""
    operations: tuple[OperationRecord, ...] = ()
    probes: tuple[Probe, ...] = ()
    """Attempts at what an adapter that does not claim it must refuse."""
    extra_states: int | None = None
    """How many states more than the reference an adapter may have, in a proof by default. Chapters that say it are
    those proved by default."""
    abilities: tuple[Ability, ...] = ()
    """What an adapter may lack of it, beside its operations."""
    dialects: tuple[Dialect, ...] = ()
    """What engines do differently on purpose. Caches of one sequence have those of a growing cache too."""
    observe: Mapping[str, str] = {}
    """What a session observes after every step of an adapter that claims it at any level, each with the ability
    that this takes, if any."""
    values: tuple[Value, ...] = ()
    tensors: tuple[Tensor, ...] = ()
    columns: tuple[Column, ...] = ()
