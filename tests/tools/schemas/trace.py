"""The schema of a trace, made from the tables that the parser reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kvspec import masks, trace
from kvspec.chapters.record import Argument
from kvspec.geometry import SIZES, WORDS
from kvspec.geometry import TEXTS as PATTERNS
from kvspec.operations.arguments import CACHE_NAME, TEXTS, allowed_words
from kvspec.operations.table import OPERATIONS
from kvspec.registry import KINDS

DRAFT = "https://json-schema.org/draft/2020-12/schema"

WINDOW = {"window": {"type": "integer", "minimum": -masks.LARGEST_WINDOW, "maximum": masks.LARGEST_WINDOW}}
"""The field of a part that is a window, as JSON schema."""

MASK_PART = {
    "oneOf": [
        {"const": "causal"},
        {
            "type": "object",
            "properties": WINDOW,
            "required": ["window"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {
                "array": {"type": "array"},
                "dtype": {"enum": list(masks.MASK_DTYPES)},
                "shape": {"type": "array", "maxItems": 6, "contains": {"const": 0}, "items": {"type": "integer"}},
            },
            "required": ["array", "dtype"],
            "additionalProperties": False,
        },
    ]
}
"""A mask part as JSON schema."""


def schema() -> dict[str, Any]:
    """Build the published JSON schema of a trace (`kvspec/schemas/trace.json` holds its text)."""
    return {
        "$schema": DRAFT,
        "$id": "kvconform:trace",
        "title": "kvconform trace",
        "type": "object",
        "required": ["kvtrace", "kind", "config", "ops"],
        "additionalProperties": False,
        "properties": {
            "kvtrace": {"const": trace.VERSION},
            "kind": {"enum": list(KINDS)},
            "config": {"$ref": "#/$defs/config"},
            "ops": {"type": "array", "maxItems": trace.LARGEST_TRACE, "items": {"$ref": "#/$defs/operation"}},
            "note": {"type": "string"},
        },
        "$defs": {
            "config": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    **{n: {"type": "integer", "minimum": 1, "maximum": most} for n, most in SIZES.items()},
                    **{name: {"enum": list(words)} for name, words in WORDS.items()},
                    **{name: {"type": "string", "pattern": pattern} for name, pattern in PATTERNS.items()},
                },
            },
            "mask_part": MASK_PART,
            "operation": {"oneOf": [_operation(n, o.arguments) for n, o in OPERATIONS.items()]},
        },
    }


def _operation(name: str, arguments: Iterable[Argument]) -> dict[str, Any]:
    arguments = tuple(arguments)
    return {
        "type": "object",
        "required": ["op", *(a.name for a in arguments if a.required)],
        "additionalProperties": False,
        "properties": {
            "op": {"const": name},
            "cache": {"type": "string", "pattern": CACHE_NAME},
            **{a.name: argument_schema(a) for a in arguments},
        },
    }


def argument_schema(argument: Argument) -> dict[str, Any]:
    """Give the JSON schema of an argument."""
    if allowed := allowed_words(argument):
        return {"enum": list(allowed)}
    if argument.holds in TEXTS:
        return {"type": "string", "pattern": TEXTS[argument.holds]}
    if argument.holds == "operations":
        return {
            "type": "array",
            "minItems": 1,
            "maxItems": trace.LARGEST_TRACE,
            "items": {"$ref": "#/$defs/operation"},
        }
    if argument.holds == "mask":
        return {"type": "array", "items": {"$ref": "#/$defs/mask_part"}}
    return {"type": "integer", "minimum": argument.low, "maximum": argument.high}
