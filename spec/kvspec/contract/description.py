"""Reads and checks an adapter's description of itself."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from typing import Any, Literal, cast
from zlib import crc32

from kvspec.chapters import CHAPTERS
from kvspec.contract.description_fields import (
    check_dtypes,
    check_fields,
    check_inputs,
    check_known,
    check_limits,
    want,
)
from kvspec.contract.vocabulary import LEVELS, Level
from kvspec.forms import parsed
from kvspec.geometry import DTYPES, Config
from kvspec.registry import (
    CACHES,
    DIALECTS,
    KINDS,
    RECORDS,
    VALUES,
    Needed,
    abilities,
    dialects,
    observed_in,
)


@dataclass(frozen=True)
class Claim:
    """What an adapter claims for one chapter.

    `grows` (growing, ring, bounded): "step" if capacity follows the spec's growth rule exactly, else "free".
    `without`: the abilities of the chapter that are not claimed, see `kvspec.operations.abilities`. `dialects`:
    what it does differently from the spec's default, see the records of the chapters.
    """

    level: Level
    grows: Literal["step", "free"] = "free"
    without: frozenset[str] = frozenset()
    dialects: Mapping[str, int | str] = field(default_factory=dict)

    def dialect(self, name: str) -> int | str:
        """Give what is declared of a dialect, or its default."""
        return self.dialects.get(name, DIALECTS[name].default)

    def largest_append(self, config: Config, capacity: int | None = None) -> int | None:
        """Give the most rows that a ring takes at once; None for any. `capacity`: rows it has allocated."""
        chunk, window = self.dialect("chunk"), config.window or 0
        if isinstance(chunk, int):
            return chunk
        sizes = {"window": window, "window + 1": window + 1, "2 * window": 2 * window, "capacity": capacity}
        return sizes.get(chunk)

    def old_rows(self, config: Config) -> int | None:
        """Give how many old rows an append leaves in a ring; None for all."""
        keeps, window = self.dialect("keeps"), config.window or 0
        if isinstance(keeps, int):
            return window + keeps
        return {"window - 1": window - 1, "window": window}.get(keeps)

    def hides(self, clause: str) -> str:
        """Say which dialect leaves nothing to show a clause; empty if none does."""
        hiding = (f"{n} {v}" for n, v in self.dialects.items() if clause in DIALECTS[n].hides.get(str(v), ()))
        return next(hiding, "")

    def to_json(self) -> dict[str, Any]:
        """Give the JSON of the claim."""
        without = {"without": sorted(self.without)} if self.without else {}
        return {"level": self.level, "grows": self.grows, **self.dialects, **without}


@dataclass(frozen=True)
class Description:
    """The checked answer of `describe`. `limits` bound what can be opened and appended; None means no bound."""

    name: str
    chapters: Mapping[str, Claim]
    version: str = ""
    device: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Anything worth a line in a report. `why`: why it works on this device; told when a run starts."""
    dtypes: tuple[str, ...] = tuple(DTYPES)
    largest_append: int | None = None
    largest_batch: int | None = None
    most_rows: int | None = None
    """The most rows that one cache is given in a trace; those that are taken back count too."""
    most_heads: int | None = None
    """The most heads of keys and values."""
    least_window: int = 1
    """The smallest window of its rings."""
    multiple: int = 1
    """Widths of keys and values are multiples of it."""
    equal: bool = False
    """Whether keys and values have one width."""
    forms: tuple[str, ...] = ()
    """The forms of rows that it opens; any if there is none."""
    refusals: Literal["own", "cited"] = "own"
    """own: any exception is a refusal if nothing changed. cited: a refusal names its clause."""
    by_adapter: tuple[str, ...] = ()
    """Observables that the adapter makes up in its engine's place, such as an offset that the caller keeps."""
    inputs: tuple[str, ...] = ()
    """Forms of arrays that it takes beside plain ones; see `kvspec.operations.input_forms`."""
    known: tuple[Mapping[str, Any], ...] = ()
    """Known deviations that it declares, each with the fields of an entry of `kvconform.toml`; see
    `kvspec.contract.description_fields.KNOWN`."""
    runs: bool = True
    """Whether it takes a run in one message; else it is asked for the operations of a run one by one."""
    overwrites: bool = True
    """Whether a scribble overwrites the arrays that its engine was handed and handed out. If not, they are copies
    made on the way, and nothing shows who owns the engine's."""

    def claims(self, chapter: str, level: str = "visible") -> bool:
        """Tell whether the adapter claims the chapter at this level or above."""
        claim = self.chapters.get(chapter)
        return claim is not None and LEVELS.index(claim.level) >= LEVELS.index(level)

    def lowest(self, chapters: Iterable[str]) -> Level:
        """Give the lowest level that the adapter claims of these chapters. Raises ValueError if it claims none."""
        return min((self.chapters[c].level for c in chapters if c in self.chapters), key=LEVELS.index)

    def able(self, needed: Iterable[Needed]) -> bool:
        """Tell whether all these abilities, each with its chapter, are claimed."""
        return not self.lacks(needed)

    def lacks(self, needed: Iterable[Needed]) -> list[str]:
        """Give those of these abilities that are not claimed, of the chapters that are: `ring.view`."""
        return [f"{c}.{name}" for c, name in needed if c in self.chapters and name in self.chapters[c].without]

    @property
    def complete(self) -> bool:
        """Tell whether each claim has all its abilities, and holds for all windows and widths."""
        whole = not any(claim.without for claim in self.chapters.values())
        return whole and not self._sizes() and not self.forms

    @property
    def answers(self) -> set[str]:
        """Give the observables that the adapter makes up in its engine's place, dialects that say so included."""
        declared = (d for claim in self.chapters.values() for d in claim.dialects.items())
        return {*self.by_adapter, *(o for n, value in declared for o in DIALECTS[n].answers.get(str(value), ()))}

    @property
    def plain(self) -> bool:
        """Tell whether it does everything as the spec does by default, and declares no dialect."""
        return not any(claim.dialects for claim in self.chapters.values())

    def observed(self, kinds: Collection[str] = KINDS) -> tuple[str, ...]:
        """Give what a session is told to observe, at any level, of caches of these kinds."""
        key = frozenset(kinds)
        if key not in self._observed:
            self._observed[key] = self._observers(key)
        return self._observed[key]

    @cached_property
    def _observed(self) -> dict[frozenset[str], tuple[str, ...]]:
        return {}

    def _observers(self, kinds: Collection[str]) -> tuple[str, ...]:
        asked = [c for c in _about(kinds) if c in self.chapters]
        lacking = {o for c in asked for o, needs in RECORDS[c].observe.items() if needs in self.chapters[c].without}
        return tuple(o for o in observed_in(asked) if o not in lacking)

    def shows_all(self, kinds: Collection[str]) -> bool:
        """Tell whether a session observes all that there is to see of caches of these kinds."""
        return self.observed(kinds) == observed_in(_about(kinds))

    def supports(self, config: Config) -> bool:
        """Tell whether a valid config is within the declared limits."""
        window = self.least_window if config.window is None else config.window
        sizes = config.batch <= (self.largest_batch or config.batch) and window >= self.least_window
        return config.dtype in self.dtypes and sizes and self.takes_rows(config) and self.takes_form(config.form)

    def takes_form(self, text: str | None) -> bool:
        """Tell whether a form of rows is within the declared limits."""
        return text is None or not self.forms or text in self.forms

    def formed(self, config: Config) -> Config:
        """Give the config with a form that is within the declared limits, of the same codes if there is one,
        and rows as much wider as that needs."""
        if self.takes_form(config.form):
            return config
        codes = config.form.partition("/")[0]
        like = [text for text in self.forms if text.partition("/")[0] == codes] or self.forms
        text = like[crc32(config.form.encode()) % len(like)]
        keys, values = parsed(text)
        k_dim, v_dim = keys.wide(config.k_dim), values.wide(config.v_dim)
        return config.changed(form=text, k_dim=k_dim, v_dim=min(k_dim, v_dim) if values.latent else v_dim)

    def takes_rows(self, config: Config) -> bool:
        """Tell whether the heads and the widths of a config are within the declared limits."""
        return config.kv_heads <= (self.most_heads or config.kv_heads) and self.takes_widths(config)

    def takes_widths(self, config: Config) -> bool:
        """Tell whether the widths of a config are within the declared limits."""
        whole = config.k_dim % self.multiple == config.v_dim % self.multiple == 0
        return whole and (config.k_dim == config.v_dim or not self.equal)

    def widened(self, config: Config, avoid: Collection[int] = ()) -> Config:
        """Give the config with the next widths that are within the declared limits, but none of those to avoid."""
        if self.takes_widths(config):
            return config
        keys, values = (self._wider(width, avoid) for width in (config.k_dim, config.v_dim))
        keys, values = (max(keys, values),) * 2 if self.equal else (keys, values)
        return config.changed(k_dim=keys, v_dim=values)

    def _wider(self, width: int, avoid: Collection[int]) -> int:
        return next(n for n in count(self.multiple, self.multiple) if n >= width and n not in avoid)

    def at_most(self, level: Level) -> Description:
        """Give the same description with no chapter claimed above this level."""
        lower = {p: replace(c, level=min(c.level, level, key=LEVELS.index)) for p, c in self.chapters.items()}
        return replace(self, chapters=lower)

    def to_json(self) -> dict[str, Any]:
        """Give the JSON for the wire and the run record."""
        most = {"rows": self.most_rows, "heads": self.most_heads, "form": list(self.forms) or None}
        most = {name: limit for name, limit in most.items() if limit is not None}
        return {
            "name": self.name,
            "version": self.version,
            "device": self.device,
            "details": dict(self.details),
            "chapters": {p: c.to_json() for p, c in self.chapters.items()},
            "dtypes": list(self.dtypes),
            "limits": {"append": self.largest_append, "batch": self.largest_batch, **most, **self._sizes()},
            "refusals": self.refusals,
            **({"by_adapter": list(self.by_adapter)} if self.by_adapter else {}),
            **({"inputs": list(self.inputs)} if self.inputs else {}),
            **({"known": [dict(entry) for entry in self.known]} if self.known else {}),
        }

    def said(self) -> str:
        """Give all that an adapter is judged by, as a text: the device may be another in another process."""
        about = {name: value for name, value in self.to_json().items() if name not in ("device", "details")}
        return json.dumps(about | {"takes": self.takes}, sort_keys=True)

    @property
    def takes(self) -> list[str]:
        """Name what a worker does that others need not: see `took`."""
        return [name for name, does in (("run", self.runs), ("scribble", self.overwrites)) if does]

    def took(self, takes: Collection[str]) -> Description:
        """Give the same description of a worker that does these of `run` and `scribble`."""
        return replace(self, runs="run" in takes, overwrites="scribble" in takes)

    def _sizes(self) -> dict[str, Any]:
        """The JSON of the limits of windows and widths, where there are any."""
        window = {} if self.least_window == 1 else {"window": {"least": self.least_window}}
        free = self.multiple == 1 and not self.equal
        return window if free else {**window, "dims": {"multiple": self.multiple, "equal": self.equal}}


def description(said: Any) -> Description:
    """Check an adapter's description of itself. Raises BadInput that names the field."""
    check_fields(said)
    dtypes = said.get("dtypes", list(DTYPES))
    check_dtypes(dtypes)
    limits = said.get("limits", {})
    check_limits(limits)
    window, dims = limits.get("window", {}), limits.get("dims", {})
    known = said.get("known", [])
    check_known(known)
    refusals, by_adapter = said.get("refusals", "own"), said.get("by_adapter", [])
    _check_answers(refusals, by_adapter)
    inputs = said.get("inputs", [])
    check_inputs(inputs)
    return Description(
        name=said["name"],
        chapters=_claims(said.get("chapters")),
        version=said.get("version", ""),
        device=said.get("device", ""),
        details=dict(said.get("details", {})),
        dtypes=tuple(dtypes),
        largest_append=limits.get("append"),
        largest_batch=limits.get("batch"),
        most_rows=limits.get("rows"),
        most_heads=limits.get("heads"),
        least_window=window.get("least", 1),
        multiple=dims.get("multiple", 1),
        equal=dims.get("equal", False),
        forms=tuple(limits.get("form") or ()),
        refusals=cast(Any, refusals),
        by_adapter=tuple(by_adapter),
        inputs=tuple(inputs),
        known=tuple(dict(entry) for entry in known),
    )


def _check_answers(refusals: Any, by_adapter: Any) -> None:
    want(refusals in ("own", "cited"), f"refusals must be own or cited, is {refusals!r:.40}")
    listed = isinstance(by_adapter, list | tuple) and set(by_adapter) <= set(VALUES)
    want(listed, f"by_adapter must list some of {', '.join(VALUES)}")


def _claims(chapters: Any) -> dict[str, Claim]:
    want(isinstance(chapters, Mapping) and len(chapters) > 0, "chapters must be an object with at least one")
    claims = {p: _claim(p, c) for p, c in chapters.items()}
    want(bool(set(KINDS) & set(claims)), f"chapters must hold one of {', '.join(KINDS)}")
    _check_masks(claims)
    return claims


def _check_masks(claims: Mapping[str, Claim]) -> None:
    """Refuse a claim on masks without a history: only the history says which row each column of a mask is."""
    made = "mask" in claims and not {"mask", "causal"} <= claims["mask"].without
    for kind in set(CACHES) & set(claims) if made else ():
        handed_out = "history" not in claims[kind].without
        want(handed_out, f"chapter mask: its columns are those of a history, and {kind} is claimed without history")


def _claim(chapter: Any, claim: Any) -> Claim:
    want(chapter in CHAPTERS, f"unknown chapter {chapter!r:.40}; known: {', '.join(CHAPTERS)}")
    fields = {"level": claim} if isinstance(claim, str) else claim
    want(isinstance(fields, Mapping), f"chapter {chapter} must be a level or an object with one")
    unknown = set(fields) - {"level", "grows", *DIALECTS, "with", "without"}
    known = ", ".join(("level", "with", "without", "grows", *dialects(chapter)))
    want(
        not unknown, f"chapter {chapter}: unknown field {min(map(str, unknown), default='')!r:.40}; known: {known}"
    )
    level = fields.get("level")
    want(level in LEVELS, f"chapter {chapter}: level must be visible or storage, is {level!r:.40}")
    grows = fields.get("grows", "free")
    want(grows in ("step", "free"), f"chapter {chapter}: grows must be step or free, is {grows!r:.40}")
    declared, without = dict(_declared(chapter, fields)), _without(chapter, fields)
    early = declared.get("made") == "before" and chapter not in without
    want(
        not early, f"chapter {chapter}: a mask that is made before the append goes without the operation {chapter}"
    )
    only_visible = f"chapter {chapter}: at level storage {', '.join(declared)} must be as by default"
    want(level == "visible" or not declared, only_visible)
    return Claim(cast(Level, level), cast(Any, grows), without, declared)


def _about(kinds: Collection[str]) -> Iterator[str]:
    """Name the chapters that are about caches of these kinds."""
    return (chapter for chapter in RECORDS if chapter not in KINDS or chapter in kinds)


def _declared(chapter: str, fields: Mapping[str, Any]) -> Iterator[tuple[str, int | str]]:
    """The dialects that are not as by default."""
    for name, value in ((n, fields[n]) for n in DIALECTS if n in fields):
        dialect = DIALECTS[name]
        number = [] if dialect.least is None else [f"{dialect.least} or more"]
        known = ", ".join([*number, *dialect.words])
        want(dialect.allows(value), f"chapter {chapter}: {name} must be one of {known}, is {value!r:.40}")
        if value != dialect.default:
            want(name in dialects(chapter), f"chapter {chapter} has no dialect {name}")
            yield name, value


def _without(chapter: str, fields: Mapping[str, Any]) -> frozenset[str]:
    """The abilities not claimed: those named by `without`, or all but those named by `with`."""
    all_ = abilities(chapter)
    want(not {"with", "without"} <= set(fields), f"chapter {chapter}: say with or without, not both")
    named = fields.get("with", fields.get("without", []))
    want(isinstance(named, list | tuple), f"chapter {chapter}: with and without are lists of abilities")
    for name in named:
        want(name in all_, f"chapter {chapter}: unknown ability {name!r:.40}; known: {', '.join(all_)}")
    return frozenset(set(all_) - set(named) if "with" in fields else named)
