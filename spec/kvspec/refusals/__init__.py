"""The texts of refusals, shared by the reference and the adapters: those of `sink.toml` are `sink`, and so on.

Only the words are shared. Whether to refuse is decided where the rule is enforced, by each cache for itself,
so that one mistake is not made twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, reduce
from pathlib import Path
from typing import Any, NamedTuple

from kvspec.errors import Refused
from kvspec.geometry import DTYPES
from kvspec.tables import table

FORMS: dict[str, Callable[[Any], object]] = {
    "last": lambda count: count - 1,
    "list": lambda items: ", ".join(map(str, items)),
    "fields": lambda config: ", ".join(f"{k}={v}" for k, v in config.to_json().items()),
}
"""What `{layers:last}`, `{found.shape:list}` and `{config:fields}` stand for."""

_FORMED = re.compile(r"\{([\w.]+):(\w+)\}")
_ALWAYS = {"dtypes": ", ".join(DTYPES)}


class Text(NamedTuple):
    """The words of a refusal, and the names of the values in them."""

    names: tuple[str, ...]
    words: str
    formed: bool
    """Whether a value stands in a form."""

    def __call__(self, clause: str, *values: Any) -> Refused:
        """Make the refusal under a clause. Raises ValueError for too few values or too many."""
        by_name = _ALWAYS | dict(zip(self.names, values, strict=True))
        words = _FORMED.sub(lambda m: _form(by_name, *m.groups()), self.words) if self.formed else self.words
        return Refused(clause, words.format(**by_name))


def _form(by_name: dict[str, Any], path: str, form: str) -> str:
    name, *attributes = path.split(".")
    return str(FORMS[form](reduce(getattr, attributes, by_name[name])))


class Texts:
    """The texts of a table, each an attribute: `"cut(to, past)"` is called `cut`. The table is read when a text is
    first asked for."""

    def __init__(self, table: str) -> None:
        self._table = table

    def __getattr__(self, name: str) -> Text:
        """Give a text. Raises AttributeError if there is none of this name."""
        try:
            return _texts(self._table)[name]
        except KeyError:
            raise AttributeError(f"{self._table}.toml has no refusal {name}") from None


@cache
def _texts(module: str) -> dict[str, Text]:
    rows = ((*call.rstrip(")").split("("), words) for call, words in table("kvspec.refusals", module).items())
    return {name: Text(tuple(filter(None, n.split(", "))), w, bool(_FORMED.search(w))) for name, n, w in rows}


def __getattr__(name: str) -> Texts:
    """Give the texts of a table, unless a module of its name has them and more. Raises AttributeError."""
    table = Path(__file__).with_name(f"{name}.toml")
    if not table.is_file() or table.with_suffix(".py").is_file():
        raise AttributeError(f"{__name__} has no texts {name!r}")
    return Texts(name)
