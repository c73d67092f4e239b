"""The board as Markdown, for the repository."""

from __future__ import annotations

from kvreports.board import asked, met, served
from kvreports.board.engines import Board, Bug, Cache, Engine
from kvreports.board.served import Served, ServedBug
from kvreports.drawing.text import draw
from kvreports.markdown import cited, code, fenced, literal, table
from kvreports.serving import markdown as serving

TITLE = "# The board"

INTRODUCTION = """\
Each row is a cache of a released engine, judged through its adapter by `kvconform run`. *Holds* counts the clauses
that it claims; other clauses were not judged. Clauses that are *partly observed* hold in everything that could be
seen; of those *by adapter* the adapter answered in the engine's place. The columns behind them count bugs: one bug
may break several clauses. The caches with the gravest bugs come first. A row without a bug is news too. A *quick
run* judged a part of what a whole run judges.

**Wrong result**: a query sees rows that it must not see, or misses rows. **Broken promise**: it does not do what
its own text says. **Alias**: it writes into the arrays of its caller, or into those that it handed out. **After an
error**: the engine raised an error and left a changed cache; it promises nothing for that case. **Unchecked**: it
takes a senseless argument; it does not promise to refuse it. **Choice**: it differs from the spec on purpose. **The
adapter's**: the adapter hands the engine what the engine has no argument for; the engine is not charged with it."""

OURS = """\
The caches of this project. They are not counted above."""


WHOLE = """\
Each row is an engine that loaded a probe (`kvconform probe`) and answered histories of requests, over HTTP or in
the process that judged it. The numbers of reused tokens, evicted blocks, preempted requests and drafts are what the
engine itself counted or told: a clean row says what it has seen. What was not exercised is no pass."""


def render(board: Board) -> str:
    """All engines in a table; then each that deviates, with its traces, drawn where a result is wrong."""
    parts = [TITLE, f"{literal(board.headline)}.", *_over_time(board), *_whole(board.served), *_asked(board)]
    parts += ["## Caches", INTRODUCTION]
    parts += [_engines(board, board.caches)]
    parts += [met.render(board)]
    parts += ["## Ours", OURS, _engines(board, board.ours)] if board.ours else []
    parts += [*(_wrong(one, bug, board.spec) for one in board.served for bug in one.bugs)]
    parts += [part for cache in board.caches for engine in cache.engines for part in _engine(engine, board.spec)]
    rows = [[literal(u.engine), literal(u.reason)] for u in board.unjudged]
    parts += ["## Not judged", table(["engine", "what stopped it"], rows)] if rows else []
    return "\n\n".join(parts) + "\n"


def _engines(board: Board, caches: list[Cache]) -> str:
    head = [
        "cache",
        "version",
        "holds",
        "partly observed",
        "by adapter",
        *board.sorts,
        *board.chapters,
        "dialects and limits",
    ]
    return table(head, [_row(e, board) for cache in caches for e in cache.engines])


def _row(engine: Engine, board: Board) -> list[str]:
    claimed, held, partly, _ = engine.numbers
    name = f"[{literal(engine.name)}]({engine.address})"
    chapters = [engine.chapter(c) for c in board.chapters]
    return [
        name,
        literal(engine.version) + (", quick run" if engine.part else ""),
        f"{held} of {claimed}",
        str(partly),
        str(engine.by_adapter),
        *(str(engine.of_sort(sort) or "") for sort in board.sorts),
        *chapters,
        literal(engine.dialects),
    ]


def _over_time(board: Board) -> list[str]:
    """Where releases were compared, in a line for each engine."""
    if not board.compared:
        return []
    lines = [f"- {literal(c.record.engine)}: {literal(c.headline)}." for c in board.compared]
    return ["\n".join(["Releases side by side are on [a page of their own](VERSIONS.md):", "", *lines])]


def _whole(found: list[Served]) -> list[str]:
    """Whole engines: what was asked of each, and what it did."""
    if not found:
        return []
    rows = [[f"[{literal(s.form)}]({s.address})", *map(literal, s.row)] for s in found]
    return ["## Whole engines", f"{literal(served.headline(found))}.", WHOLE, table(served.HEAD, rows)]


def _asked(board: Board) -> list[str]:
    """Engines that were asked by a probe."""
    if not board.asked:
        return []
    rows = [[f"[{literal(one.record.engine)}]({one.address})", *map(literal, one.row)] for one in board.asked]
    return [
        "## Asked by a probe",
        f"{literal(asked.headline(board.asked))}.",
        asked.INTRODUCTION,
        table(asked.HEAD, rows),
    ]


def _wrong(one: Served, bug: ServedBug, spec: str) -> str:
    first = bug.failures[0]
    links = {"script": bug.script, "draft of a report": bug.draft, "upstream": bug.link}
    told = ", ".join(f"[{name}]({address})" for name, address in links.items() if address)
    clauses = list(dict.fromkeys(f.clause for f in bug.failures))
    cited_as = ", ".join(serving.link(c, spec) for c in clauses)
    words = [
        f"## {literal(one.form)} {literal(one.version)}",
        f"**{bug.sort.capitalize()}** in {cited_as}: {literal(bug.reason)}",
        told,
        f"{code(first.history, 400)}",
        fenced("\n".join(first.drawing or first.found)),
    ]
    return "\n\n".join(filter(None, words))


def _engine(engine: Engine, spec: str) -> list[str]:
    if not engine.deviations:
        return []
    return [
        f"## {literal(engine.name)} {literal(engine.version)}",
        *(_bug(bug, spec) for bug in engine.bugs),
    ]


def _bug(bug: Bug, spec: str) -> str:
    deviation, failure = bug.first, bug.first.failure
    links = {"script": deviation.script, "draft of a report": deviation.draft, "upstream": deviation.link}
    told = ", ".join(f"[{name}]({address})" for name, address in links.items() if address)
    sort = f"**{deviation.sort.capitalize()}** in {cited(bug.clauses, spec)}"
    words = [f"{sort}: {literal(bug.reason)}", told]
    words += [f"{code(failure.words, 400)}: {literal(failure.message, 300)}"]
    words += [fenced(draw(failure.steps))] if deviation.sort == "wrong result" else []
    return "\n\n".join(filter(None, words))
