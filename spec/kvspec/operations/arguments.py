"""The arguments of operations: their allowed values."""

from __future__ import annotations

from kvspec.chapters.record import Argument
from kvspec.geometry import TEXTS as IN_CONFIGS
from kvspec.geometry import WORDS as CONFIG_WORDS
from kvspec.operations.input_forms import INPUTS
from kvspec.operations.texts import MEDIA, ORDERS, SCALING, SECTIONS, TOKENS

ALIKE = (
    "alike",
    "keys_alike",
    "values_alike",
    "first_alike",
    "last_alike",
    "but_key_alike",
    "but_value_alike",
)
"""What rows may hold that are equal to others, in whole or in part; see `kvspec.rows`."""

IN_RUNS = (
    "in_runs",
    "keys_in_runs",
    "values_in_runs",
    "first_in_runs",
    "last_in_runs",
    "sequence_in_runs",
)
"""What rows may hold whose neighbours are equal, in whole or in part; see `kvspec.rows`."""

FILLS = (
    *("legible", "bits", "edges", "random", "fine", "hay", "needle", "copies", "even", "ramp"),
    *(*ALIKE, *IN_RUNS),
)
"""What the rows of an append may hold; see `kvspec.rows`."""

QUERIES = ("random", "fine", "huge", "tiny", "zero")
"""What queries may hold; see `kvspec.rows`."""

BESIDE = ("nan", "numbers")
"""What a padded block holds where no sequence owns a column; see `kvspec.rows`."""

PAIRINGS = ("norm", "neox")
"""Which elements of a row RoPE rotates together: neighbours, or one from each half."""

NAME = "^[a-z][a-z0-9]{0,7}$"
"""Pattern of the names of snapshots, rounds and captured work."""

CACHE_NAME = "^[A-Z]$"
"""Pattern of the names of caches; the cache that a trace begins with is A."""

LAYERS = "^[A-Z-]{1,8}$"
"""The caches of a round, layer by layer, `-` for a layer without one: `A-B`."""

_SOME = "(-?[0-9]{1,7}|[0-9]{1,5}-[0-9]{1,5}(/[0-9]{1,4})?)"

TABLE = "^(-?[0-9]{1,6}(,-?[0-9]{1,6}){0,63}|empty)$"
"""A block table as an argument: page numbers in order."""

LIST = "^(-?[0-9]{1,10}(,-?[0-9]{1,10}){0,63}|empty)$"
"""A list of numbers, one for each sequence or the sequences themselves: `2,0,1`."""

POSITIONS = f"^({_SOME}(,{_SOME}){{0,63}}|empty)$"
"""Positions of rows: some one by one, and some from one to another, each or every third: `0,4-9,12-96/3`."""

SEVERAL_CACHES = "^[A-Z]{1,8}$"
"""The names of one cache or several, in order: `BC`."""

WORDS: dict[str, tuple[str, ...]] = {
    **CONFIG_WORDS,
    "fill": FILLS,
    "input": INPUTS,
    "queries": QUERIES,
    "beside": BESIDE,
    "pairing": PAIRINGS,
    "axes": ORDERS,
}
"""The allowed words of an argument, by what it holds."""

TEXTS = {"name": NAME, "layers": LAYERS, "table": TABLE, **IN_CONFIGS}
TEXTS |= {"list": LIST, "other": CACHE_NAME, "others": SEVERAL_CACHES, "tokens": TOKENS, "media": MEDIA}
TEXTS |= {"scaling": SCALING, "sections": SECTIONS, "positions": POSITIONS}
"""The patterns of text arguments, by what they hold."""


def allowed_words(argument: Argument) -> tuple[str, ...]:
    """Give the allowed words of an argument; none if it holds something else."""
    return argument.kinds or WORDS.get(argument.holds, ())
