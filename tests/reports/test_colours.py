"""Text can be read: the contrast of every colour on what it stands on."""

from __future__ import annotations

import re

import pytest

from kvreports.page import TEMPLATES


def colours(scheme: int) -> dict[str, str]:
    css = (TEMPLATES / "page.css").read_text() + (TEMPLATES / "drawing.css").read_text()
    found = re.findall(r"--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)", css)
    return {name: pair[scheme] for name, *pair in found}


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


PAIRS = [(i, "bg") for i in ("ink", "soft", "link", "good", "bad", "known", "none", "d-ink", "d-soft", "d-bad")]
PAIRS += [(i, f"{i}-fill") for i in ("good", "bad", "known", "none", "d-bad")]
PAIRS += [
    ("ink", "raised"),
    ("d-ink", "d-fill"),
    ("link", "known-fill"),
    ("soft", "known-fill"),
    ("ink", "known-fill"),
]


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(("ink", "paper"), PAIRS)
def test_text_can_be_read_in_both_schemes(ink: str, paper: str, scheme: int) -> None:
    """WCAG 2.2 AA, https://www.w3.org/TR/WCAG22/#contrast-minimum: at least 4.5."""
    found = colours(scheme)
    low, high = sorted(luminance(found[name]) for name in (ink, paper))
    assert (high + 0.05) / (low + 0.05) >= 4.5
