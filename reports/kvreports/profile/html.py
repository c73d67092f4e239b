"""A profile as one HTML page: the roofline, the bars, and a table that says the same in numbers."""

from __future__ import annotations

from typing import Any

from kvreports import page
from kvreports.facts import Facts
from kvreports.profile import bars, comparison, figures, findings, roofline, table
from kvreports.safe_text import cleaned, shortened
from kvreports.units import seconds, size, when
from kvspec.records.profile import Profile

STYLES, SCRIPTS = ("page.css", "drawing.css", "profile.css"), ("theme.js",)
HEATS = (1.0, 1.5, 3.0)
"""Ratios above which a figure is coloured more."""
SIZES = {"roomy": (1120, 520), "narrow": (356, 420)}
"""The roofline twice, for desks and for phones: the page shows the one that fits."""


def render(record: Profile, before: Profile | None = None) -> str:
    """The page; with a profile before, what changed since."""
    record, before = cleaned(record), None if before is None else cleaned(before)
    return page.render(
        "profile.html.j2",
        STYLES,
        SCRIPTS,
        record=record,
        name=table.name(record),
        findings=findings.sentences(record),
        slow=findings.rows(record),
        slow_head=findings.HEAD,
        changes=None if before is None else changes(before, record),
        facts=facts(record),
        limits=table.limits(record),
        rooflines={kind: roofline.draw(record, *pixels) for kind, pixels in SIZES.items()},
        marks=roofline.legend(record),
        groups=bars.groups(record),
        short=bars.short(record),
        peers=figures.peers(record),
        missing=[peer for peer in record.peers if peer.missing],
        head=table.HEAD,
        rows=table.rows(record),
        skipped=table.skipped(record.skipped),
        figures=figures,
        heat=heat,
    )


def facts(record: Profile) -> Facts:
    """The facts a reader wants first."""
    adapter, machine, settings = record.adapter, record.machine, record.settings
    memory = settings.get("memory_bytes")
    values = {
        "device": adapter.get("device"),
        "version": adapter.get("version"),
        "machine": f"{machine.get('cpu') or 'unknown'}, {machine.get('cores') or '?'} cores",
        "load before": machine.get("load"),
        "GPU before": machine.get("GPU"),
        "GPU after": machine.get("GPU after"),
        "device time": record.clock or "the adapter offers no clock; times are the host's",
        "limits measured by": record.streams or "not measured",
        "rounds": settings.get("rounds"),
        "rows in rotation": size(memory) if isinstance(memory, int | float) else "",
        "run": f"{when(record.started)}, {seconds(record.seconds)}",
    }
    return [(name, shortened(str(value), 300)) for name, value in values.items() if value not in (None, "")]


def changes(before: Profile, now: Profile) -> dict[str, Any]:
    """What the page says of two profiles."""
    heats = [heat(comparison.growth(pair)) for pair in comparison.pairs(before, now)]
    rows = list(zip(comparison.rows(before, now), heats, strict=True))
    told = comparison.summary(before, now)
    return {"since": before.started, "summary": told, "head": comparison.HEAD, "rows": rows}


def heat(ratio: float) -> int:
    """How much slower, in steps that the page colours: 0 is not slower, 3 much slower."""
    return sum(ratio > limit for limit in HEATS)
