"""Reads and checks an adapter's description of itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from kvspec.chapters import CHAPTERS
from kvspec.contract.vocabulary import LEVELS, Level
from kvspec.errors import BadInput
from kvspec.geometry import DTYPES, Config
from kvspec.registry import KINDS


@dataclass(frozen=True)
class Claim:
    """What an adapter claims for one chapter.

    `grows` (growing and ring): "step" if capacity follows the spec's growth rule exactly, else "free". `rewind`
    (ring): how many rows beyond the window it can rewind; 0 is what the spec demands, -1 means no limit.
    """

    level: Level
    grows: Literal["step", "free"] = "free"
    rewind: int = 0


@dataclass(frozen=True)
class Description:
    """The checked answer of `describe`. `limits` bound what can be opened and appended; None means no bound."""

    name: str
    chapters: Mapping[str, Claim]
    version: str = ""
    device: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    dtypes: tuple[str, ...] = tuple(DTYPES)
    largest_append: int | None = None
    largest_batch: int | None = None
    known: Mapping[str, str] = field(default_factory=dict)
    """Clauses it is known to break (expected failures), each with the reason."""

    def claims(self, chapter: str, level: str = "visible") -> bool:
        """Tell whether the adapter claims the chapter at this level or above."""
        claim = self.chapters.get(chapter)
        return claim is not None and LEVELS.index(claim.level) >= LEVELS.index(level)

    def supports(self, config: Config) -> bool:
        """Tell whether a valid config is within the declared limits."""
        return config.dtype in self.dtypes and config.batch <= (self.largest_batch or config.batch)

    def at_most(self, level: Level) -> Description:
        """Give the same description with no chapter claimed above this level."""
        lower = {p: replace(c, level=min(c.level, level, key=LEVELS.index)) for p, c in self.chapters.items()}
        return replace(self, chapters=lower)

    def to_json(self) -> dict[str, Any]:
        """Give the JSON for the wire and the run record."""
        return {
            "name": self.name,
            "version": self.version,
            "device": self.device,
            "details": dict(self.details),
            "chapters": {p: vars(c) for p, c in self.chapters.items()},
            "dtypes": list(self.dtypes),
            "limits": {"append": self.largest_append, "batch": self.largest_batch},
            "known": dict(self.known),
        }


def description(said: Any) -> Description:
    """Check an adapter's description of itself. Raises BadInput that names the field."""
    if not isinstance(said, Mapping):
        raise BadInput(f"describe: expected an object, found {said!r:.60}")
    known = {"name", "version", "device", "details", "chapters", "dtypes", "limits", "known"}
    for name in said:
        _want(name in known, f"unknown field {name!r:.40}; known: {', '.join(sorted(known))}")
    _want(isinstance(said.get("name"), str) and said["name"] != "", "name must be a text, not empty")
    for name in ("version", "device"):
        _want(isinstance(said.get(name, ""), str), f"{name} must be a text")
    for name in ("details", "known", "limits"):
        _want(isinstance(said.get(name, {}), Mapping), f"{name} must be an object")
    dtypes: Any = said.get("dtypes", list(DTYPES))
    _want(isinstance(dtypes, list | tuple) and len(dtypes) > 0, f"dtypes must list some of {', '.join(DTYPES)}")
    for d in dtypes:
        _want(d in DTYPES, f"unknown dtype {d!r:.40}; known: {', '.join(DTYPES)}")
    limits = said.get("limits", {})
    for name in limits:
        _want(name in ("append", "batch"), f"unknown limit {name!r:.40}; known: append, batch")
        ok = limits[name] is None or (type(limits[name]) is int and limits[name] >= 1)
        _want(ok, f"limit {name} must be a whole number above 0, or null")
    for clause, reason in said.get("known", {}).items():
        _want(isinstance(reason, str) and reason != "", f"known deviation {clause!r:.40} must give its reason")
    return Description(
        said["name"],
        _claims(said.get("chapters")),
        said.get("version", ""),
        said.get("device", ""),
        dict(said.get("details", {})),
        tuple(dtypes),
        limits.get("append"),
        limits.get("batch"),
        dict(said.get("known", {})),
    )


def _claims(chapters: Any) -> dict[str, Claim]:
    _want(isinstance(chapters, Mapping) and len(chapters) > 0, "chapters must be an object with at least one")
    claims = {p: _claim(p, c) for p, c in chapters.items()}
    _want(bool(set(KINDS) & set(claims)), f"chapters must hold one of {', '.join(KINDS)}")
    return claims


def _claim(chapter: Any, claim: Any) -> Claim:
    _want(chapter in CHAPTERS, f"unknown chapter {chapter!r:.40}; known: {', '.join(CHAPTERS)}")
    fields = {"level": claim} if isinstance(claim, str) else claim
    _want(isinstance(fields, Mapping), f"chapter {chapter} must be a level or an object with one")
    unknown = set(fields) - {"level", "grows", "rewind"}
    _want(not unknown, f"chapter {chapter}: unknown field {min(map(str, unknown), default='')!r:.40}")
    level = fields.get("level")
    _want(level in LEVELS, f"chapter {chapter}: level must be visible or storage, is {level!r:.40}")
    grows, rewind = fields.get("grows", "free"), fields.get("rewind", 0)
    _want(grows in ("step", "free"), f"chapter {chapter}: grows must be step or free, is {grows!r:.40}")
    _want(type(rewind) is int and rewind >= -1, f"chapter {chapter}: rewind must be -1 or more")
    _want(rewind == 0 or level == "visible", f"chapter {chapter}: at level storage rewind is 0")
    return Claim(cast(Level, level), cast(Any, grows), int(rewind))


def _want(holds: bool, otherwise: str) -> None:
    if not holds:
        raise BadInput(f"describe: {otherwise}")
