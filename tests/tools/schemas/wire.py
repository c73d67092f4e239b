"""The schemas of the wire, made from the tables that the code reads: what is checked is what is published."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kvspec.chapters.record import LARGEST, Dialect, OperationRecord, Value
from kvspec.contract import CHAPTERS, LEVELS, METERED
from kvspec.contract.description_fields import KNOWN, MOST_FORMS, SEVERAL
from kvspec.forms import PATTERN
from kvspec.geometry import DTYPES, FIELDS, SIZES, TEXTS, WORDS
from kvspec.operations.arguments import CACHE_NAME
from kvspec.operations.input_forms import INPUTS
from kvspec.operations.table import OPEN, OPERATIONS, RUN
from kvspec.registry import DIALECTS, KINDS, OBSERVABLES, VALUES
from kvspec.wire import framing, messages
from tools.schemas.trace import DRAFT, WINDOW, argument_schema

Schema = dict[str, Any]

_ID = {"type": "integer", "minimum": 0}
_LARGE = {"type": "integer", "minimum": -framing.LARGEST_NUMBER, "maximum": framing.LARGEST_NUMBER}
_SHAPE = {
    "description": "Sizes, C order; empty where the dtype is null.",
    "type": "array",
    "maxItems": 8,
    "items": {"type": "integer", "minimum": 0, "maximum": framing.LARGEST_TENSORS},
}
_HEADER = (
    "One line of JSON; behind it the bytes of its tensors, in the order listed, little-endian, C order, "
    "bool as one byte each."
)


def _object(required: Iterable[str], properties: Schema, **more: Any) -> Schema:
    return {
        **more,
        "type": "object",
        "required": list(required),
        "additionalProperties": False,
        "properties": properties,
    }


def _tensor(name: Schema, dtypes: Iterable[str | None]) -> Schema:
    return {
        "type": "array",
        "minItems": 3,
        "items": False,
        "prefixItems": [name, {"enum": list(dtypes)}, {"$ref": "#/$defs/shape"}],
    }


def question() -> Schema:
    """Build the schema for the header of a message to an engine."""
    return {
        "$schema": DRAFT,
        "$id": "kvconform:question",
        "title": "kvconform question: the header of a message to an engine",
        "description": _HEADER,
        "oneOf": [_describe(), _begin(), *map(_asked, OPERATIONS.values())],
        "$defs": {"id": _ID, "shape": _SHAPE, "config": _config(), "mask_part": _mask_part(), "operation": _part()},
    }


def _describe() -> Schema:
    properties = {
        "id": {"$ref": "#/$defs/id"},
        "op": {"const": "describe"},
        "protocol": {"const": framing.PROTOCOL},
    }
    return _object(properties, properties, description="What the engine is and claims.")


def _begin() -> Schema:
    observe = {"type": "array", "uniqueItems": True, "items": {"enum": list(OBSERVABLES)}}
    properties = {"id": {"$ref": "#/$defs/id"}, "op": {"const": "begin"}, **_opening(), "observe": observe}
    says = (
        "Drop all that was, open cache A. `observe`: what each answer shall carry: state after every operation; "
        "history and causal mask after an append or a draft; the bytes held; the meter's counts."
    )
    return _object(properties, properties, description=says)


def _opening() -> Schema:
    return {"kind": {"enum": list(KINDS)}, "config": {"$ref": "#/$defs/config"}}


def _asked(operation: OperationRecord) -> Schema:
    """Build the schema of the question for one operation."""
    kept = [a for a in operation.arguments if not (operation.config and (a.name == "kind" or a.name in FIELDS))]
    properties = {
        "id": {"$ref": "#/$defs/id"},
        "op": {"const": operation.name},
        "cache": {"type": "string", "pattern": CACHE_NAME},
        **{a.name: argument_schema(a) for a in kept},
        **(_opening() if operation.config else {}),
        **_tensors(operation),
    }
    required = ["id", "op", *(["cache"] if operation is OPEN else []), *(a.name for a in kept if a.required)]
    required += ["kind", "config"] if operation.config else []
    required += ["tensors"] if operation.rows or operation.queries else []
    return _object(required, properties, description=operation.says)


def _tensors(operation: OperationRecord) -> Schema:
    """Give the tensors that come with an operation."""
    if operation is RUN:
        tensor = _tensor(
            {"type": "string", "pattern": r"^[0-9]{1,4}\.(keys|values|queries|mask[0-7])$"}, framing.TYPES
        )
        says = "Those of its operations, by their numbers from 0: what an operation takes each time, stacked."
        return {"tensors": {"description": says, "type": "array", "items": tensor}}
    masked = any(a.holds == "mask" for a in operation.arguments)
    part = _tensor({"type": "string", "pattern": "^mask[0-7]$"}, ("bool", "f32"))
    asked = [_tensor({"const": "queries"}, DTYPES)] if operation.queries else []
    rows = [_tensor({"const": part}, DTYPES) for part in ("keys", "values")] if operation.rows else []
    given = [*asked, *rows]
    if masked and not given:
        return {"tensors": {"type": "array", "maxItems": 8, "items": part}}
    if not given:
        return {}
    if masked:  # its mask's arrays come first, however many there are
        return {"tensors": {"type": "array", "minItems": len(given), "items": {"anyOf": [*given, part]}}}
    says = "Queries and key rows and value rows, as far as the operation takes them, in this order."
    listed = {"type": "array", "minItems": len(given), "items": False, "prefixItems": given}
    return {"tensors": {"description": says, **listed}}


def _part() -> Schema:
    names = [name for name in OPERATIONS if name != RUN.name]
    says = "An operation of a run: a question without id and tensors."
    return {"description": says, "type": "object", "required": ["op"], "properties": {"op": {"enum": names}}}


def _config() -> Schema:
    size = {"type": "integer", "minimum": -LARGEST, "maximum": LARGEST}
    properties = {**dict.fromkeys(SIZES, size), **{name: {"enum": list(words)} for name, words in WORDS.items()}}
    properties |= {name: {"type": "string", "pattern": pattern} for name, pattern in TEXTS.items()}
    says = "Sizes may be out of range on purpose: the cache refuses them."
    return _object(("batch", "kv_heads", "k_dim", "v_dim", "dtype", "step"), properties, description=says)


def _mask_part() -> Schema:
    tensor = {"tensor": {"type": "string"}}
    says = "One of this message's tensors."
    window = _object(WINDOW, WINDOW)
    return {"oneOf": [{"const": "causal"}, window, _object(tensor, tensor, description=says)]}


def answer() -> Schema:
    """Build the schema for the header of a message from an engine."""
    return {
        "$schema": DRAFT,
        "$id": "kvconform:answer",
        "title": "kvconform answer: the header of a message from an engine",
        "description": f"{_HEADER} An answer carries the id of its question.",
        "oneOf": [_performed(), _described(), _cannot_run()],
        "$defs": {"shape": _SHAPE},
    }


def _performed() -> Schema:
    says = (
        "refused: the spec allows it and nothing changed; unsupported: not offered, nothing changed; "
        "error: anything else went wrong; absent: the cache or the name was never made."
    )
    which = "After the name, where one of several is observed, a dot and which: offset.B of cache B."
    clause = {"description": "refused: the clause that allows it, where known.", "type": "string"}
    values = {f"^{v.name}({messages.WHICH})$": {"description": v.says, **_value(v)} for v in VALUES.values()}
    properties = {
        "id": _ID,
        "result": {"description": says, "enum": list(messages.RESULTS)},
        "clause": {**clause, "maxLength": messages.LONGEST_CLAUSE},
        "message": {"type": "string", "maxLength": messages.LONGEST_MESSAGE},
        "values": {
            "description": which,
            "type": "object",
            "additionalProperties": False,
            "patternProperties": values,
        },
        "tensors": {
            "description": "What was observed; a dtype of null where there is no array.",
            "type": "array",
            "maxItems": framing.MOST_TENSORS,
            "items": _tensor({"type": "string", "pattern": f"^({messages.TENSOR})$"}, (*framing.TYPES, None)),
        },
    }
    return _object(("id", "result"), properties, description="To every operation.")


def _value(value: Value) -> Schema:
    """Build the schema of an answer's value; numbers are written without fraction or exponent."""
    if value.holds == "truth":
        return {"type": "boolean"}
    if value.holds == "text":
        return {"type": "string", "maxLength": messages.LONGEST_CLAUSE}
    if value.holds == "numbers":
        exactly = {} if value.count is None else {"minItems": value.count, "maxItems": value.count}
        return {"type": ["array", "null"], "items": _LARGE, **exactly}
    if value.holds == "counts":
        return {"type": "object", "additionalProperties": False, "properties": dict.fromkeys(METERED, _LARGE)}
    return {**_LARGE, "type": ["integer", "null"]}


def _described() -> Schema:
    says = "Questions beyond those that every engine answers: run, operations done in one message."
    takes = {"description": says, "type": "array", "items": {"enum": [RUN.name, "scribble"]}}
    properties = {"id": _ID, "result": {"const": "ok"}, "describe": {"$ref": "kvconform:describe"}}
    return _object(properties, {**properties, "takes": takes}, description="To describe.")


def _cannot_run() -> Schema:
    properties = {"id": _ID, "result": {"const": "cannot_run"}, "message": {"type": "string"}}
    says = "To describe, where the engine cannot run on this machine; the message says why and what to do."
    return _object(properties, properties, description=says)


_WORDS: Schema = {"type": "string", "minLength": 1}


def describe() -> Schema:
    """Build the schema of an engine's description of itself."""
    return {
        "$schema": DRAFT,
        "$id": "kvconform:describe",
        "title": "kvconform description: what an engine says of itself",
        **_object(("name", "chapters"), _itself()),
        "$defs": {"claim": _claim()},
    }


def _itself() -> dict[str, Schema]:
    text = {"type": "string"}
    return {
        "name": _WORDS,
        "version": text,
        "device": text,
        "details": {
            "description": "Anything worth a line in a report. A run tells `why` when it starts.",
            "type": "object",
        },
        "chapters": _chapters(),
        "dtypes": {"type": "array", "minItems": 1, "items": {"enum": list(DTYPES)}},
        "limits": _limits(),
        "refusals": {
            "description": "own: by errors of its own, which change nothing; cited: with the clause.",
            "enum": ["own", "cited"],
        },
        "by_adapter": {
            "description": "Observables that the adapter makes up in its engine's place.",
            "type": "array",
            "items": {"enum": list(VALUES)},
        },
        "inputs": {
            "description": "Forms in which an adapter in Python takes arrays, beside plain ones.",
            "type": "array",
            "items": {"enum": list(INPUTS[1:])},
        },
        "known": {
            "description": "What its engine is known to do otherwise: as entries of `kvconform.toml`.",
            "type": "array",
            "items": _known(_WORDS),
        },
    }


def _limits() -> Schema:
    limit, size = {"type": ["integer", "null"], "minimum": 1}, {"type": "integer", "minimum": 1}
    form = {
        "description": "The forms of rows that it opens; any if left out.",
        "type": "array",
        "maxItems": MOST_FORMS,
        "items": {"type": "string", "pattern": PATTERN},
    }
    widths = {"multiple": size, "equal": {"type": "boolean"}}
    return _object(
        (),
        {
            **dict.fromkeys(("append", "batch", "rows", "heads"), limit),
            "form": form,
            "window": _object((), {"least": size}, description="The smallest window of a ring."),
            "dims": _object((), widths, description="Widths are multiples; keys and values have one width."),
        },
        description="The most: rows of an append, sequences, rows given to a cache in all, heads.",
    )


def _known(words: Schema) -> Schema:
    """A known deviation: a planted bug is the model of it, or it is the outcome of a trace."""
    several = {"oneOf": [words, {"type": "array", "items": words, "minItems": 1}]}
    outcome = ["trace", "shows"]
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {name: several if name in SEVERAL else words for name in KNOWN},
        "required": ["clause", "reason"],
        "oneOf": [
            {"required": ["model"], "not": {"anyOf": [{"required": [name]} for name in outcome]}},
            {"required": outcome, "not": {"required": ["model"]}},
        ],
    }


def _chapters() -> Schema:
    return {
        "description": "What is claimed: each chapter with a level, or an object with one.",
        "type": "object",
        "anyOf": [{"required": [kind]} for kind in KINDS],
        "propertyNames": {"enum": list(CHAPTERS)},
        "additionalProperties": {"oneOf": [{"enum": list(LEVELS)}, {"$ref": "#/$defs/claim"}]},
    }


_ABILITIES = {"type": "array", "items": {"type": "string"}}


def _claim() -> Schema:
    grows = "step: capacity follows the spec's growth rule; free: it does as it likes."
    properties = {
        "level": {"enum": list(LEVELS)},
        "grows": {"description": grows, "enum": ["step", "free"]},
        **{name: _dialect(dialect) for name, dialect in DIALECTS.items()},
        "with": {"description": "The only abilities of the chapter that are claimed.", **_ABILITIES},
        "without": {"description": "The abilities of the chapter that are not claimed.", **_ABILITIES},
    }
    default = {name: {"const": dialect.default} for name, dialect in DIALECTS.items()}
    deep = {"if": {"properties": {"level": {"const": "storage"}}}, "then": {"properties": default}}
    return _object(("level",), properties) | deep


def _dialect(dialect: Dialect) -> Schema:
    numbers = [] if dialect.least is None else [{"type": "integer", "minimum": dialect.least}]
    return {"description": dialect.says, "anyOf": [*numbers, {"enum": list(dialect.words)}]}
