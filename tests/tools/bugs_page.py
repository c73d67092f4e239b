"""`spec/BUGS.md`: the classes of real bugs, each with a picture, the bugs planted here, the clauses against them.

`python -m tools.bugs_page` writes it again from the published mutation matrix, and the pictures beside it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tabulate import tabulate

from kvconform.bugs import known_bugs
from kvconform.bugs.catalogue import CLASSES, NOT_PLANTED
from kvconform.bugs.mutant import Mutant
from kvconform.judge import steps, trial
from kvreports import json_file
from kvreports.drawing.svg import draw_svg
from kvspec.contract import description
from kvspec.notation import from_sentence
from kvspec.reading.clauses import index
from kvspec.records.mutants import Matrix, MutantRecord
from kvspec.session.driver import Session

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "reports/published/mutants/mutants.json"
PAGE, PICTURES = ROOT / "spec/BUGS.md", ROOT / "spec/pictures"

HEAD = ("bug", "what it does", "clauses that guard against it", "shortest trace that shows it")

INTRODUCTION = """\
# Bugs

KV caches go wrong in few ways. These are the classes of bugs that were found in real inference engines, and the
bugs of each class that are planted in the reference here, to show that the suite finds them. Each links to where
it was seen. The picture shows one bug of the class on the shortest trace that reveals it: above what the spec
says, below what such a cache does.

[The taxonomy of anomalies](kvspec/appendices/anomalies.md) tells what a class of bug does to a model's output, and
how it shows in a trace. The [mutation matrix](../reports/published/mutants/mutants.md) tells what found each bug,
and how soon.

This page is made by `python -m tools.bugs_page`.
"""


def page(rows: Sequence[MutantRecord]) -> str:
    """The page, of the real bugs in a mutation matrix."""
    parts = [INTRODUCTION, "## Classes\n", "\n".join(_contents(rows)) + "\n"]
    for name in CLASSES:
        parts += _chapter(name, [m for m in rows if m.bug_class == name])
    parts += ["## Not planted\n", "Entries of the catalogue about what this spec says nothing of.\n"]
    parts.append("\n".join(f"- {entry}: {why}" for entry, why in sorted(NOT_PLANTED.items())) + "\n")
    return "\n".join(parts)


def _contents(rows: Sequence[MutantRecord]) -> Iterator[str]:
    for name, cls in CLASSES.items():
        count = sum(m.bug_class == name for m in rows)
        yield f"- [{name}](#{name.lower()}): {cls.says} ({count} planted)"


def _chapter(name: str, rows: Sequence[MutantRecord]) -> Iterator[str]:
    yield f"## {name}\n"
    yield f"*{CLASSES[name].name}*: {CLASSES[name].says}.\n"
    if not rows:
        yield "None of this class can be planted here; see the end of this page.\n"
        return
    shown = pictured(rows)
    yield f"![{shown.says}]({PICTURES.name}/{name}.svg)\n"
    yield f"*{shown.id}* on `{shown.trace}`: {shown.says}\n"
    yield tabulate([_row(m) for m in rows], HEAD, tablefmt="github", disable_numparse=True) + "\n"


def _row(m: MutantRecord) -> list[str]:
    links = ", ".join(f"[{c}](kvspec/chapters/{index()[c].chapter}.md#{c})" for c in m.clauses)
    return [f"[{m.id}]({m.link})", m.says, links, f"`{m.trace}`"]


def pictured(rows: Sequence[MutantRecord]) -> MutantRecord:
    """The one of a class that is drawn: on a plain cache, by more than one operation, as few as may be."""
    plain = ("growing", "ring")
    return min(rows, key=lambda m: (m.operations < 2, not m.trace.startswith(plain), len(m.trace)))


def picture(m: MutantRecord, planted: Mutant) -> str:
    """The mutant on its shortest trace, as SVG."""
    adapter = planted.adapter()
    about = description(adapter.describe())
    trace = from_sentence(m.trace)
    session = Session(adapter, trial.observables(trace, about, "storage"))
    seen = trial.run(trace, session, about, "storage")
    return str(draw_svg(steps.failing_steps(seen), m.says))


def main() -> int:
    """Write the page and its pictures into the checkout that is the working directory."""
    rows = [m for m in json_file.load(PUBLISHED, Matrix).mutants if m.bug_class in CLASSES]
    planted = {m.id: m for m in known_bugs.real()}
    PICTURES.mkdir(exist_ok=True)
    for name in CLASSES:
        of = [m for m in rows if m.bug_class == name]
        if of:
            shown = pictured(of)
            (PICTURES / f"{name}.svg").write_text(picture(shown, planted[shown.id]) + "\n", encoding="utf-8")
    PAGE.write_text(page(rows), encoding="utf-8")
    sys.stdout.write(f"{PAGE}: {len(rows)} bugs\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
