"""Run records as one HTML page."""

from __future__ import annotations

from collections.abc import Sequence

from kvreports import facts, inline_markdown, page
from kvreports.drawing.packed import packed
from kvreports.drawing.svg import legend
from kvreports.run import beside, coverage, diagnosis, failures, findings, judged, standing
from kvreports.run.overview import Clauses, Column, overview
from kvreports.safe_text import Html, cleaned_record, shortened
from kvspec.records.run import VERDICTS, ClauseRecord, Record

STYLES, SCRIPTS = ("page.css", "drawing.css", "player.css"), ("theme.js", "page.js", "player.js")

LEAST = 1.5
"""Width of the thinnest part of a bar that is 100 wide."""


def render(records: Sequence[Record], clauses: Clauses) -> str:
    """The page for one record, or for many side by side."""
    view = overview([cleaned_record(r) for r in records], clauses)
    return page.render(
        "run.html.j2",
        STYLES,
        SCRIPTS,
        view=view,
        columns=view.columns,
        chapters=sorted(view.chapters, key=lambda chapter: not chapter.claimed),
        links={c.number: failures.anchors(c) for c in view.columns},
        md=lambda text: inline_markdown.html(shortened(text, 4000), view.anchors),
        clause_link=lambda id_: Html(inline_markdown.clause_link(id_, view.anchors)),
        different=facts.differing([c.record for c in view.columns]),
        findings={c.number: findings.findings(c.record) for c in view.columns},
        levels={c.number: _one_level(c.record) for c in view.columns},
        suspects=lambda column: _pointed_at(column.record),
        verdicts=[v for v in VERDICTS if any(v in c.counts for c in view.columns)],
        texts={row.id: row.clause for chapter in view.chapters for row in chapter.rows},
        legend=legend(),
        facts=facts,
        failures=failures,
        judged=judged.judged,
        carried=lambda f: packed(f.steps, str(f.trace.get("kind", "")), f.words),
        diagnosis=diagnosis,
        coverage=coverage,
        beside=beside,
        standing=standing,
        groups=standing.groups,
        kinds=standing.KINDS,
        words=standing.WORDS,
        shares=shares,
        all_verdicts=VERDICTS,
    )


def _one_level(record: Record) -> str:
    """The level at which a run judged clauses of the other level; empty if there are several levels, or none."""
    levels = {c.judged_at for c in record.clauses if c.judged_at and c.judged_at != c.level}
    return (levels.pop() or "") if len(levels) == 1 else ""


def _pointed_at(record: Record) -> list[ClauseRecord]:
    """The broken clauses that differing traces point at, the likeliest first."""
    return [c for c in findings.suspects(record) if c.suspicion > 0][: findings.SUSPECTS]


def shares(column: Column) -> list[tuple[str, str, float, float]]:
    """Verdict, kind, start and width of each part of a bar 100 wide; none is too thin to be seen."""
    total, x, parts = sum(column.counts.values()), 0.0, []
    rest = 100 - LEAST * len(column.counts)
    for verdict, n in column.counts.items():
        width = LEAST + rest * n / total
        parts.append((verdict, standing.KINDS.get(verdict, "none"), round(x, 2), round(width, 2)))
        x += width
    return parts
