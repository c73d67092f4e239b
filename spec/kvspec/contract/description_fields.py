"""Checks the fields of an adapter's description, except claims. Raises BadInput that names the field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvspec.errors import BadInput
from kvspec.forms import parsed
from kvspec.geometry import DTYPES
from kvspec.operations.input_forms import INPUTS

FIELDS = {
    *("name", "version", "device", "details", "chapters", "dtypes", "limits", "refusals", "by_adapter", "inputs"),
    "known",
}
"""The fields that a description may have."""


def check_fields(said: Any) -> None:
    """Check that every field is known, and the types of texts and objects."""
    if not isinstance(said, Mapping):
        raise BadInput(f"describe: expected an object, found {said!r:.60}")
    for name in said:
        want(name in FIELDS, f"unknown field {name!r:.40}; known: {', '.join(sorted(FIELDS))}")
    want(isinstance(said.get("name"), str) and said["name"] != "", "name must be a text, not empty")
    for name in ("version", "device"):
        want(isinstance(said.get(name, ""), str), f"{name} must be a text")
    for name in ("details", "limits"):
        want(isinstance(said.get(name, {}), Mapping), f"{name} must be an object")


def check_dtypes(dtypes: Any) -> None:
    """Check that these are dtypes of the spec, at least one."""
    want(isinstance(dtypes, list | tuple) and len(dtypes) > 0, f"dtypes must list some of {', '.join(DTYPES)}")
    for d in dtypes:
        want(isinstance(d, str) and d in DTYPES, f"unknown dtype {d!r:.40}; known: {', '.join(DTYPES)}")


def check_inputs(inputs: Any) -> None:
    """Check that these are forms of arrays other than plain ones."""
    listed = isinstance(inputs, list | tuple) and all(form in INPUTS[1:] for form in inputs)
    want(listed, f"inputs must list some of {', '.join(INPUTS[1:])}, is {inputs!r:.60}")


KNOWN = ("clause", "reason", "link", "model", "trace", "shows")
"""The fields of a known deviation that an adapter declares itself: those of `kvconform.toml` that hold no code."""

SEVERAL = ("clause", "model")
"""Those of them that may hold several texts."""


def check_known(known: Any) -> None:
    """Check that each known deviation says what the engine does: by a model, or by the outcome of a trace."""
    want(isinstance(known, list | tuple), f"known must be a list of deviations, is {known!r:.60}; {KNOWN_FORM}")
    for i, entry in enumerate(known):
        want(isinstance(entry, Mapping) and set(entry) <= set(KNOWN), f"known[{i}] must have of {', '.join(KNOWN)}")
        for name, said in entry.items():
            several = isinstance(said, list | tuple) and name in SEVERAL and len(said) > 0
            texts = said if several else [said]
            want(all(isinstance(t, str) and t for t in texts), f"known[{i}]: {name} must be a text, not empty")
        forms = ("model" in entry) + {"trace", "shows"}.issubset(entry)
        one = forms == 1 and not ("model" in entry and {"trace", "shows"} & set(entry))
        want({"clause", "reason"} <= set(entry) and one, f"known[{i}]: {KNOWN_FORM}")


KNOWN_FORM = "give the clause, the reason, and either a model, or a trace and what it shows, as in kvconform.toml"


LIMITS: dict[str, dict[str, type]] = {"window": {"least": int}, "dims": {"multiple": int, "equal": bool}}
"""The limits that have parts, with the type of each part."""


def check_limits(limits: Mapping[str, Any]) -> None:
    """Check the limits of appends, batches, rows, heads, windows, widths and forms."""
    for name, limit in limits.items():
        known = ("append", "batch", "rows", "heads", "form", *LIMITS)
        want(name in known, f"unknown limit {name!r:.40}; known: {', '.join(known)}")
        if name == "form":
            _check_forms(limit)
        elif name in LIMITS:
            _check_parts(name, limit)
        else:
            want(limit is None or _is_size(limit), f"limit {name} must be a whole number above 0, or null")


MOST_FORMS = 64
"""Most forms that an adapter may list."""


def _check_forms(listed: Any) -> None:
    """Check that these are forms of rows."""
    right = isinstance(listed, list | tuple) and len(listed) <= MOST_FORMS
    want(right, f"limit form must be a list of at most {MOST_FORMS} forms, is {listed!r:.60}")
    for text in listed:
        try:
            parsed(text if isinstance(text, str) else "")
        except ValueError as e:
            raise BadInput(f"describe: limit form: {e}") from None


def _check_parts(name: str, limit: Any) -> None:
    known = LIMITS[name]
    want(isinstance(limit, Mapping) and set(limit) <= set(known), f"limit {name} must have of {', '.join(known)}")
    for part, value in limit.items():
        ok = _is_size(value) if known[part] is int else type(value) is bool
        want(
            ok,
            f"limit {name}: {part} must be {'a whole number above 0' if known[part] is int else 'true or false'}",
        )


def _is_size(value: Any) -> bool:
    return type(value) is int and value >= 1


def want(holds: bool, otherwise: str) -> None:
    """Raise BadInput with this message unless it holds."""
    if not holds:
        raise BadInput(f"describe: {otherwise}")
