"""The page of bounds: what is derived, how much of it good implementations use, and how near an input comes.

`python -m tools.bounds` measures and prints it, `--write` writes it, which takes torch, so that its numbers are not
lost. Exit status: 0 all is as it should be, 1 a bound is exceeded or hardly reached, 2 torch is missing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from tabulate import tabulate

from kvspec.registry import RECORDS
from support.bounds import Used, table
from support.bounds.table import Line

PAGE = Path(__file__).parents[2] / "reports" / "published" / "BOUNDS.md"
SAMPLES = 4

TEXT = """\
# Bounds

Where arithmetic happened, or a form rounded, a number may be off by a bound that the spec derives: [what is read of
a row in a form](../../spec/kvspec/chapters/forms.md), [an output of
attention](../../spec/kvspec/chapters/attention.md#the-bound-for-fast-implementations), [a row that RoPE
turned](../../spec/kvspec/chapters/rope.md). Each line is a bound. *Worst* is the worst element that good
implementations made of {samples} samples: how far it is off, as a share of its bound, and whose it is. No share is
above 1, or the bound would accuse what is right. *Reached* is the most that was seen at all, with inputs that are
made to use the bound up: at least half, or the bound could be narrower. Where it is less, the page says why.

A sample is 32 rows of 64 elements in a form; 8 queries over up to 100 rows of 64 elements; 256 rows of 128 elements
that are turned; or 16 latent rows of DeepSeek-V3's geometry. {who} were measured: *one end exact* keeps an end of
each group of an affine form to the bit, and *half away from zero* rounds half codes so. The fast kernels encode as
the others of their device do. The letters are those of the chapters, u is 2^-24. A form that the spec does not name
has no step here. `python -m tools.bounds --write`, run in `tests/`, makes this page.

"""
"""What the page begins with."""

HEAD = ("what", "bound", "clause", "worst: off by", "of the bound", "whose", "reached", "by")


class Measured(NamedTuple):
    """A line, and the worst elements of good implementations and of inputs that are made for it."""

    line: Line
    good: list[Used]
    hard: list[Used]

    @property
    def worst(self) -> Used:
        """The worst of the good implementations."""
        return max(self.good, default=Used())

    @property
    def reached(self) -> Used:
        """The worst of all."""
        return max([*self.good, *self.hard])

    def wrong(self) -> str:
        """Say what is not as it should be; nothing if all is."""
        share, by = self.reached.share, self.reached.by
        if share > 1:
            return f"{self.line.what}: {by} is off by {share:.3f} of the bound"
        return f"{self.line.what}: only {share:.3f} is reached" if share < self.line.least else ""

    def row(self) -> tuple[str, ...]:
        """What the page says of it."""
        line, worst = self.line, self.worst
        seen = (f"{worst.off:.2g}", f"{worst.share:.3f}", worst.by) if self.good else ("–",) * 3
        reached = f"{self.reached.share:.3f}"
        return line.what, line.bound, _linked(line.source), *seen, reached, self.reached.by


def _linked(clause: str) -> str:
    chapter = next(name for name, own in RECORDS.items() if own.letters == clause.partition("-")[0])
    return f"[{clause}](../../spec/kvspec/chapters/{chapter}.md#{clause})"


def measured(line: Line, samples: int) -> Measured:
    """Measure what is used of a bound."""
    return Measured(line, line.good(samples), line.hard())


def page(found: dict[str, list[Measured]], samples: int) -> str:
    """The page as Markdown."""
    names = sorted({used.by for each in found.values() for m in each for used in m.good})
    text = TEXT.format(samples=samples, who="; ".join(names))
    return text + "\n".join(part for title, each in found.items() for part in _part(title, each))


def _part(title: str, found: list[Measured]) -> Iterator[str]:
    """A part of the page."""
    rows = [m.row() for m in found]
    yield f"## {title}\n\n{tabulate(rows, HEAD, tablefmt='github', disable_numparse=True)}\n"
    for m in found:
        if m.line.why:
            yield f"*{m.line.what}*: {m.line.why}.\n"


def main(arguments: Sequence[str]) -> int:
    """Measure, and write or print the page."""
    if "--write" in arguments and not find_spec("torch"):
        print("torch is not installed, and its numbers would be lost", file=sys.stderr)
        return 2
    found = {title: [measured(line, SAMPLES) for line in lines] for title, lines in table.lines().items()}
    text = page(found, SAMPLES)
    if "--write" in arguments:
        PAGE.write_text(text, encoding="utf-8")
    else:
        print(text)
    wrong = [said for each in found.values() for m in each if (said := m.wrong())]
    print(*wrong, sep="\n", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
