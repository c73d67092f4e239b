"""A badge of a record: how many of the claimed clauses hold, as a small SVG that loads nothing."""

from __future__ import annotations

from html import escape

from kvreports.board.engines import Engine
from kvreports.safe_text import Html, line, plain, shortened

LABEL = "KV cache"
COLOURS = {"good": "#17693a", "known": "#7a4f00", "bad": "#b3261e", "none": "#515961"}
"""Dark enough for white text."""
CHAR, PAD, HIGH = 6.6, 6, 20
"""Width of a character, space beside a text, height; all in pixels."""


def badge(engine: Engine) -> Html:
    """The badge of a record."""
    claimed, held, _, broken = engine.numbers
    kinds = {engine.kind(c) for c in engine.chapters}
    kind = next((k for k in ("bad", "known", "good") if k in kinds and held + broken), "none")
    message = f"{held} of {claimed} clauses" if claimed else "nothing claimed"
    return drawn(LABEL, message, COLOURS[kind], f"{engine.name} {engine.version}")


def drawn(label: str, message: str, colour: str, of: str) -> Html:
    """Two texts side by side; a screen reader gets both, and the name of the adapter."""
    texts = [escape(shortened(line(plain(t)), 60)) for t in (label, message, of)]
    left, right = (len(t) * CHAR + 2 * PAD for t in (label, message))
    wide = left + right
    return Html(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide:.0f}" height="{HIGH}" role="img" '
        f'aria-label="{texts[2]}, {texts[0]}: {texts[1]}"><title>{texts[2]}, {texts[0]}: {texts[1]}</title>'
        f'<clipPath id="r"><rect width="{wide:.0f}" height="{HIGH}" rx="3"/></clipPath><g clip-path="url(#r)">'
        f'<path fill="#3c444c" d="M0 0h{left:.0f}v{HIGH}H0z"/>'
        f'<path fill="{colour}" d="M{left:.0f} 0h{right:.0f}v{HIGH}H{left:.0f}z"/></g>'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">'
        f'<text x="{left / 2:.1f}" y="14" textLength="{left - 2 * PAD:.0f}">{texts[0]}</text>'
        f'<text x="{left + right / 2:.1f}" y="14" textLength="{right - 2 * PAD:.0f}">{texts[1]}</text></g></svg>\n'
    )
