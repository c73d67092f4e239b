"""Records as one HTML page that asks nothing of any network: style, script and drawings are in it."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Sequence
from functools import lru_cache

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from kvreports import facts, inline_markdown
from kvreports.clauses import Clauses
from kvreports.drawing.svg import TEMPLATES, legend
from kvreports.run import coverage, diagnosis, failures, residency, standing
from kvreports.run.overview import Column, Overview, overview
from kvreports.safe_text import Html, cleaned_record, shortened
from kvspec.records.run import VERDICTS, Record

STYLE, SCRIPT = ("page.css", "drawing.css"), ("theme.js", "page.js")
"""What the page is styled by, and what it does."""


def render(records: Sequence[Record], clauses: Clauses) -> str:
    """The page for one record or many side by side."""
    laid = overview([cleaned_record(r) for r in records], clauses)
    links = {c.number: failures.anchors(c) for c in laid.columns}
    return (
        environment()
        .get_template("page.html.j2")
        .render(
            laid=laid,
            columns=laid.columns,
            chapters=laid.chapters,
            links=links,
            md=lambda text: inline_markdown.html(shortened(text, 4000), laid.anchors),
            clause_link=lambda id_: Html(inline_markdown.clause_link(id_, laid.anchors)),
            different=facts.differing([c.record for c in laid.columns]),
            suspects=lambda column: standing.suspects(column.record),
            verdicts=_verdicts(laid),
            texts={row.id: row.clause for chapter in laid.chapters for row in chapter.rows},
        )
    )


@lru_cache(maxsize=1)
def environment() -> Environment:
    """The template engine, with what the templates of run records call."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(
        style=source(*STYLE),
        script=source(*SCRIPT),
        policy=policy(STYLE, SCRIPT),
        legend=legend(),
        facts=facts,
        failures=failures,
        diagnosed=diagnosis,
        coverage=coverage,
        residency=residency,
        groups=standing.groups,
        kinds=standing.KINDS,
        words=standing.WORDS,
        shares=shares,
        all_verdicts=VERDICTS,
        cut=shortened,
    )
    return made


def source(*names: str) -> Html:
    """Style or script as it stands in the page; its own text, so it is not escaped."""
    return Html("".join((TEMPLATES / n).read_text(encoding="utf-8") for n in names))


def policy(styles: Sequence[str], scripts: Sequence[str]) -> str:
    """Only this style and this script are obeyed, and nothing is fetched: a second lock beside escaping."""
    style, script = (_digest(source(*names)) for names in (styles, scripts))
    return f"default-src 'none'; style-src '{style}'; script-src '{script}'; img-src data:; base-uri 'none'"


def _digest(text: str) -> str:
    return "sha256-" + b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _verdicts(laid: Overview) -> list[str]:
    """The verdicts that occur."""
    return [v for v in VERDICTS if any(v in c.counts for c in laid.columns)]


def shares(column: Column) -> list[tuple[str, str, float, float]]:
    """Verdict, kind, start and width of each part of a bar 100 wide; none too thin to be seen."""
    total, x, out = sum(column.counts.values()), 0.0, []
    floor = 1.5
    spread = 100 - floor * len(column.counts)
    for verdict, n in column.counts.items():
        width = floor + spread * n / total
        out.append((verdict, standing.KINDS.get(verdict, "none"), round(x, 2), round(width, 2)))
        x += width
    return out
