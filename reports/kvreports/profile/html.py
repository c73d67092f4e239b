"""A profile as one HTML page: the roofline, the bars, and a table that says the same in numbers."""

from __future__ import annotations

from itertools import groupby

from kvreports import facts
from kvreports.profile import bars, figures, roofline
from kvreports.profile import text as profile_text
from kvreports.run.html import environment, policy, source
from kvreports.safe_text import cleaned, shortened
from kvspec.records.profile import Profile, SkippedCase

STYLE = ("page.css", "drawing.css", "profile.css")
SCRIPT = ("theme.js",)
WIDTHS = {"roomy": (1120, 520), "narrow": (356, 420)}
"""The drawing twice, for desks and for phones: the page shows the one that fits."""


def render(record: Profile) -> str:
    """The page."""
    record = cleaned(record)
    return (
        environment()
        .get_template("profile.html.j2")
        .render(
            record=record,
            name=profile_text.name(record),
            style=source(*STYLE),
            script=source(*SCRIPT),
            policy=policy(STYLE, SCRIPT),
            told=told(record),
            limits=profile_text.limits(record),
            rooflines={kind: roofline.draw(record, *size) for kind, size in WIDTHS.items()},
            marks=roofline.legend(record),
            groups=bars.groups(record),
            short=bars.short(record),
            peers=figures.names(record),
            missing=[peer for peer in record.peers if peer.missing],
            head=profile_text.HEAD,
            rows=profile_text.rows(record),
            skipped=skipped(record.skipped),
            figures=figures,
            clip=shortened,
        )
    )


def told(record: Profile) -> facts.Facts:
    """What a reader wants to know first."""
    adapter, machine, settings = record.adapter, record.machine, record.settings
    found = {
        "device": adapter.get("device"),
        "version": adapter.get("version"),
        "machine": f"{machine.get('cpu') or 'not told'}, {machine.get('cores') or '?'} cores",
        "load before": machine.get("load"),
        "device time": record.clock or "the adapter offers no clock; times are the host's",
        "limits by": record.streams or "not measured",
        "rounds": settings.get("rounds"),
        "rows in rotation": _size(settings.get("memory_bytes")),
        "made": f"{facts.when(record.started)}, {facts.seconds(record.seconds)}",
    }
    return [(name, shortened(str(value), 300)) for name, value in found.items() if value not in (None, "")]


def _size(value: object) -> str:
    return figures.size(value) if isinstance(value, int | float) else ""


def skipped(cases: list[SkippedCase]) -> list[tuple[str, list[str]]]:
    """Cases that were not measured, by the reason."""
    ordered = sorted(cases, key=lambda case: case.reason)
    return [(reason, [case.id for case in them]) for reason, them in groupby(ordered, lambda case: case.reason)]
