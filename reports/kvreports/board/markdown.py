"""The board as Markdown, for the repository."""

from __future__ import annotations

from kvreports.board.engines import Board, Deviation, Engine
from kvreports.drawing.text import draw
from kvreports.markdown import cited, code, fenced, literal, table

INTRODUCTION = """\
Each row is a cache of a released engine, judged through its adapter by `kvconform run`. *Holds* counts the clauses
that it claims; other clauses were not judged. Clauses that are *partly observed* hold in everything that could be
seen, or the adapter answered for the engine. A row without a deviation is news too.

**Wrong result**: a query sees rows that it must not see, or misses rows. **Broken promise**: it does not do what
its own text says. **After an error**: the engine raised an error and left a changed cache; it promises nothing for
that case. **Unchecked**: it takes a senseless argument; it does not promise to refuse it. **Choice**: it differs
from the spec on purpose."""


def render(board: Board) -> str:
    """All engines in a table; then each that deviates, with its traces, drawn where a result is wrong."""
    parts = ["# The board", f"{literal(board.headline)}.", INTRODUCTION, _engines(board)]
    parts += [part for engine in board.engines for part in _engine(engine, board.spec)]
    rows = [[literal(u.engine), literal(u.reason)] for u in board.unjudged]
    parts += ["## Not judged", table(["engine", "what stopped it"], rows)] if rows else []
    return "\n\n".join(parts) + "\n"


def _engines(board: Board) -> str:
    head = ["cache", "version", "holds", "partly observed", "broken", *board.chapters, "dialects and limits"]
    return table(head, [_row(e, board) for e in board.engines])


def _row(engine: Engine, board: Board) -> list[str]:
    claimed, held, partly, broken = engine.numbers
    name = f"[{literal(engine.name)}]({engine.address})"
    chapters = [engine.chapter(c) for c in board.chapters]
    return [
        name,
        literal(engine.version),
        f"{held} of {claimed}",
        str(partly),
        str(broken),
        *chapters,
        literal(engine.dialects),
    ]


def _engine(engine: Engine, spec: str) -> list[str]:
    if not engine.deviations:
        return []
    return [
        f"## {literal(engine.name)} {literal(engine.version)}",
        *(_deviation(d, spec) for d in engine.deviations),
    ]


def _deviation(deviation: Deviation, spec: str) -> str:
    failure = deviation.failure
    links = {"script": deviation.script, "draft of a report": deviation.draft, "upstream": deviation.link}
    told = ", ".join(f"[{name}]({address})" for name, address in links.items() if address)
    sort = f"**{deviation.sort.capitalize()}** in {cited(failure.clauses, spec)}"
    words = [f"{sort}: {literal(deviation.reason)}", told]
    words += [f"{code(failure.words, 400)}: {literal(failure.message, 300)}"]
    words += [fenced(draw(failure.steps))] if deviation.sort == "wrong result" else []
    return "\n\n".join(filter(None, words))
