"""The page of a profile: whole, self-contained, safe whatever a record holds, and right in what it draws."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest
from msgspec import convert, to_builtins
from msgspec.structs import replace

from kvconform.runner.record import output
from kvprofile.workloads import OPERATIONS
from kvreports import page as pages
from kvreports import units
from kvreports.profile import bars, figures, roofline
from kvreports.profile import html as profile_html
from kvreports.profile import text as profile_text
from kvspec.records.profile import Measurement, Profile, SkippedCase, Spread
from support.readers.html_page import HOSTILE, Page
from support.samples.profile_samples import SAMPLES, changed, measurement, whole

KEPT = {"read", "write", "copy", "append", "attention", "snapshot", "rewind"}


def hostile(value: Any, key: str = "") -> Any:
    """The record with every text replaced, names of limits and operations too."""
    if isinstance(value, Profile):
        return convert(hostile(to_builtins(value)), Profile)
    if isinstance(value, str):
        return HOSTILE
    if isinstance(value, dict):
        return {k: hostile(v, k) for k, v in value.items()}
    return [hostile(v) for v in value] if isinstance(value, list) else value


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_the_page_is_well_formed_and_loads_nothing(sample: Any) -> None:
    text = profile_html.render(sample)
    page = Page(text)
    ids = page.having("id")
    assert len(ids) == len(set(ids))
    assert {h[1:] for h in page.having("href") if h.startswith("#")} <= set(ids)
    assert not page.having("src") and not page.having("style") and "url(" not in text
    assert [a["href"] for a in page.named("link")] == ["data:,"]


def test_its_own_style_and_script_are_all_that_its_policy_allows() -> None:
    text = profile_html.render(whole())
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    for tag in ("style", "script"):
        (body,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.S)
        assert pages.digest(body) in policy.replace("&#39;", "'")


def test_a_hostile_record_stays_text() -> None:
    text = profile_html.render(hostile(whole()))
    page = Page(text)
    assert text.count("<script>") == 1 and not page.named("img") and "\u202e" not in text and "\x1b" not in text
    assert "{{7*7}}" in page.text and "alert(1)" in page.text


@pytest.mark.parametrize("form", ["table", "markdown"])
def test_a_hostile_record_stays_text_elsewhere(form: str) -> None:
    text = output.text([hostile(whole())], form)
    assert "\u202e" not in text and "\x1b" not in text and "\x00" not in text
    if form == "markdown":
        assert "<script" not in text.replace("\\<", "")


def test_the_table_says_what_the_drawings_say() -> None:
    page = Page(profile_html.render(whole())).text
    for words in ("8.39 GB/s", "0.42", "0.50", "500 µs", "the adapter does not declare ring", "0.10 over the last"):
        assert words in page, words
    assert "index_copy_ took no part: it cannot be imported" in page


def test_the_terminal_says_each_reason_once_and_shows_no_empty_table() -> None:
    cases = [SkippedCase(id=id_, reason=f"no {id_[0]}") for id_ in ("a/1", "b/1", "a/2")]
    told = profile_text.render(changed(whole(), skipped=cases, limits=[]))
    assert "\nnot measured: 2 cases, such as a/1: no a\nnot measured: b/1: no b\n" in told
    assert "GB/s    quartiles" not in told and "GB/s    quartiles" in profile_text.render(whole())


def test_a_partial_a_quick_and_an_unclocked_profile_say_so() -> None:
    assert "interrupted after 2 of 9 cases" in profile_html.render(SAMPLES["partial"])
    assert "PARTIAL: interrupted after" in profile_text.render(SAMPLES["partial"])
    quick = whole()
    quick.settings["quick"] = True
    assert "A quick profile." in profile_html.render(quick)
    assert "offers no clock" in Page(profile_html.render(SAMPLES["unclocked"])).text


def test_a_case_in_a_cache_has_no_share_and_says_so() -> None:
    case = measurement("append", 1.0, 1 << 20, None, in_cache=True)
    sample = changed(whole(), measurements=[case])
    assert "in cache" in profile_text.render(sample)
    assert Page(profile_html.render(sample)).text.count("in cache") == 4, (
        "in words, among the slow cases, beside its bars, and in the table"
    )


def test_nothing_passes_or_fails() -> None:
    page = Page(profile_html.render(whole())).text
    assert "Nothing here passes or fails" in page and not {"PASS", "FAIL"} & set(re.findall(r"\w+", page))


def test_a_bar_ends_where_its_share_of_the_limit_is() -> None:
    """At half of the limit: half of the box up to the roof; peers in half the time and twice the time."""
    (drawn,) = (b.drawing for _, _, group in bars.groups(one(0.5)) for b in group)
    wide = {kind: float(w) for kind, w in re.findall(r'class="(p\d)"[^>]* width="([\d.]+)"', drawn)}
    assert wide == {"p0": bars.ROOF / 2, "p1": bars.ROOF, "p2": bars.ROOF / 4}
    assert "beyond" not in drawn


def test_a_bar_that_leaves_its_box_is_marked() -> None:
    (drawn,) = (b.drawing for _, _, group in bars.groups(one(1.0)) for b in group)
    assert drawn.count('class="beyond"') == 1, "numpy, at twice the limit"


def one(share: float) -> Profile:
    """A record of one case at this share of its limit."""
    return changed(whole(), measurements=[measurement("append", 1.0, int(share * 20e6))])


def test_a_mark_lies_where_its_bytes_and_its_rate_are() -> None:
    plot = roofline.Plot(1000, 500, 100, (1024.0, 0.1), (1024.0 * 1024**2, 100.0))
    left, right, bottom = roofline.LEFT, 1000 - 100, 500 - roofline.BOTTOM
    assert (plot.x(1024), plot.x(1024 * 1024), plot.x(1 << 30)) == (left, (left + right) / 2, right)
    assert plot.y(100) == pytest.approx(roofline.TOP) and plot.y(0.1) == bottom == plot.y(1e-9)


def test_names_of_roofs_do_not_lie_upon_each_other() -> None:
    (limit, *_), rates = whole().limits, zip("abc", (20, 20.1, 20.2), strict=True)
    close = [replace(limit, name=n, rate=Spread(median=r, low=r, high=r)) for n, r in rates]
    drawn = roofline.draw(changed(whole(), limits=close))
    heights = sorted(float(y) for y in re.findall(r'class="roofed" x="[\d.]+" y="([\d.]+)"', drawn))
    assert len(heights) == 3 and min(b - a for a, b in pairwise(heights)) >= roofline.LINE


def test_every_operation_that_moves_bytes_has_a_mark_of_its_family() -> None:
    """RoPE by itself is the only one without a family; each family has a shape and a colour."""
    assert [n for n in OPERATIONS if roofline.family(n) == len(roofline.FAMILIES) - 1] == ["rewind", "rotate"]
    assert {n for names in roofline.FAMILIES.values() for n in names} <= set(OPERATIONS)
    style = pages.source("profile.css")
    colours = [re.search(rf"\.f{kind} {{ color: (.*?); }}", style) for kind in range(len(roofline.FAMILIES))]
    assert all(colours) and len(set(roofline.MARKS)) == len(roofline.MARKS) == len(roofline.FAMILIES)


def test_a_case_is_told_with_its_pages_and_its_pairing() -> None:
    """Unless a record holds something else there."""
    case = convert(
        measurement("rotate", 1.0, 1 << 20, config={"page_size": 16, "pairing": "norm", "splits": 4}), Measurement
    )
    assert figures.shape(case) == "Model-7B, f16, 4,096 rows, norm pairs, pages of 16, 4 splits"
    odd = convert(measurement("rotate", 1.0, 1 << 20, config={"page_size": "many", "pairing": 7}), Measurement)
    assert figures.shape(odd) == "Model-7B, f16, 4,096 rows"


@pytest.mark.parametrize("size", profile_html.SIZES.values(), ids=profile_html.SIZES)
def test_everything_drawn_lies_within_the_drawing(size: tuple[int, int]) -> None:
    drawn = roofline.draw(whole(), *size)
    for x, y in re.findall(r'<text[^>]* x="(-?[\d.]+)" y="(-?[\d.]+)"', drawn):
        assert 0 <= float(x) <= size[0] and 0 <= float(y) <= size[1]
    assert drawn.count('class="point"') == 4, "what moves no bytes has no place"


@pytest.mark.parametrize(
    ("ms", "said"),
    [(0.0042, "4.20 µs"), (0.00042, "0.42 µs"), (0.5, "500 µs"), (12.34, "12.3 ms"), (2500, "2.50 s")],
)
def test_times_have_the_unit_that_suits_them(ms: float, said: str) -> None:
    assert units.duration(ms) == said
