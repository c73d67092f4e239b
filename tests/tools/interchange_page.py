"""The page of what moves where: `python -m tools.interchange_page`, run in `tests/`, writes it again.

Worked examples of MOVE and ROW that pack something are judged on every pair of adapters, and on each adapter whose
parcels cross a real carrier. Quick runs of `tools.interchange` and `tools.carriers` judge more, and take longer.
`--engines` judges released engines that pack and unpack, where TVM, transformers and mlx-lm are installed, and
writes that part of the page alone. Ends with status 1 if an example fails.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from tabulate import tabulate

from kvconform.generate.claims.fit_to_adapter import fitted
from kvconform.judge import trial
from kvspec.contract import description
from kvspec.operations.table import parts_of
from kvspec.reading.clauses import examples_of
from kvspec.session.driver import Session
from kvspec.trace import Trace
from support.engines import carriers, interchange
from tools import carriers as carrying
from tools import interchange as crossing

PAGE = Path(__file__).parents[2] / "reports" / "published" / "INTERCHANGE.md"

TEXT = """# What moves where

Rows leave one cache and come to another, by [MOVE](../../spec/kvspec/chapters/parcels.md). Each cell says how many
worked examples hold, of how many that pack something. They are of caches of one sequence, of pools, and of layers
with unlike views. {layers} of {all} are of layers, and {forms} of rows in a form, with their scales.
`python -m tools.interchange_page` in `tests/` makes this page.

## Every adapter's parcels into every other

Who packs first stands in rows, who unpacks first in columns. Each time that a cache unpacks, it goes on in the
other adapter. A pool stays in one of them.

{pairs}

{engines}## Through real carriers

What an adapter packs is handed to a carrier, and read back from it: a plain file, a safetensors file, NIXL over
loopback, LMCache's memory and its disk.

{carried}
"""


ENGINES = ("reference", "tvm-growing", "transformers-dynamic", "mlx-growing")
"""Released engines whose rows leave a cache and come back, and the reference."""

OF_ENGINES = "## Released engines\n"
ENGINES_TEXT = """{head}
TVM exports a checkpoint of a sequence, transformers hands on the rows of a cache, and mlx-lm its state. Their
adapters make parcels of these, and take them from each other. The examples are those that all can do: growing
caches of one sequence.
`python -m tools.interchange_page --engines` makes this part.

{pairs}

"""


class Held(NamedTuple):
    """How many examples hold, of how many; or what is missing."""

    passed: int
    of: int
    lacks: str = ""

    @property
    def right(self) -> bool:
        """Whether none fails."""
        return self.passed == self.of

    def __str__(self) -> str:
        return self.lacks or f"{self.passed} of {self.of}"


def moving() -> list[Trace]:
    """The worked examples in which something is packed, on kinds of cache that all these adapters have."""
    traces = [example.trace for chapter in ("parcels", "forms") for example in examples_of(chapter)]
    return [t for t in traces if t.kind in interchange.CLAIMS and {"pack", "sent"} & {op["op"] for op in t.ops}]


def held(name: str) -> Held:
    """Judge an adapter of a module by them."""
    module, _, made = name.partition(":")
    return counted(getattr(import_module(module), made)(), moving())


def counted(adapter: Any, traces: Sequence[Trace]) -> Held:
    """Judge an adapter by traces."""
    about = description(adapter.describe())
    results = [trial.on(t, partial(Session, adapter), about) for t in traces]
    return Held(sum(not result.failed for result in results), len(results))


def fitting(first: str, second: str) -> list[Trace]:
    """The examples that fit a pair of engines, and in which something is still unpacked."""
    fit = fitted(moving(), description(interchange.OfEngines(first, second).describe()))
    return [t for t in fit if "unpack" in {part["op"] for op in t.ops for part in parts_of(op)}]


def between(first: str, second: str) -> Held:
    """Judge a pair of engines by them."""
    return counted(interchange.OfEngines(first, second), fitting(first, second))


def pairs() -> dict[tuple[str, str], Held]:
    """Each adapter with each other."""
    names = crossing.ADAPTERS
    return {(a, b): held(interchange.name(a, b)) for a in names for b in names}


def carried() -> dict[tuple[str, str], Held]:
    """Each adapter through each carrier."""
    lacking = {carrier: carrying.lacks(carrier) for carrier in carriers.CARRIERS}
    return {
        (a, c): Held(0, 0, lacks) if lacks else held(carriers.name(a, c))
        for a in carrying.ADAPTERS
        for c, lacks in lacking.items()
    }


def table(cells: Mapping[tuple[str, str], Held], corner: str) -> str:
    """A table of these cells."""
    rows, columns = (list(dict.fromkeys(key[i] for key in cells)) for i in (0, 1))
    lines = [[row, *(str(cells[row, column]) for column in columns)] for row in rows]
    return tabulate(lines, [corner, *columns], tablefmt="github")


def kept() -> str:
    """The part of the page that tells of engines, as it stands there."""
    text = PAGE.read_text(encoding="utf-8")
    _, head, rest = text.partition(OF_ENGINES)
    return head + rest[: rest.index("## Through")] if head else ""


def of_engines() -> int:
    """Judge the engines, and write their part of the page."""
    cells = {(a, b): between(a, b) for a in ENGINES for b in ENGINES}
    made = ENGINES_TEXT.format(head=OF_ENGINES, pairs=table(cells, "packs first"))
    head, carriers_, rest = PAGE.read_text(encoding="utf-8").replace(kept(), "").partition("## Through")
    PAGE.write_text(head + made + carriers_ + rest, encoding="utf-8")
    return int(not all(cell.right for cell in cells.values()))


def page(crossed: Mapping[tuple[str, str], Held], through: Mapping[tuple[str, str], Held]) -> str:
    """The page of these results."""
    traces = moving()
    counts = {
        "all": len(traces),
        "layers": sum(t.kind == "layers" for t in traces),
        "forms": sum(t.config.form is not None for t in traces),
    }
    tables = {"pairs": table(crossed, "packs first"), "carried": table(through, "packs")}
    return TEXT.format(**counts, **tables, engines=kept())


def main(arguments: Sequence[str]) -> int:
    """Judge all, and write the page."""
    if arguments:
        return of_engines()
    crossed, through = pairs(), carried()
    PAGE.write_text(page(crossed, through), encoding="utf-8")
    return int(not all(cell.right for cell in (*crossed.values(), *through.values())))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
