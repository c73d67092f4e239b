"""What a profile says first: which cases are slow and why; and of two profiles, what got slower."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import convert

from kvconform.runner.record import output
from kvreports.profile import comparison, findings
from kvreports.profile import html as profile_html
from kvspec.records.profile import Measurement, Profile
from support.readers.html_page import Page
from support.samples.profile_samples import changed, measurement, spread, whole

WHY = "4.00 KiB cross to the host at 3.73 GB/s"


def case(ms: float = 4.0, ratio: float = 2.0, **more: Any) -> dict[str, Any]:
    peers = [
        {"peer": "memcpy", "ms": spread(ms / 9), "ratio": spread(9.0)},
        {"peer": "numpy", "ms": spread(ms / ratio), "ratio": spread(ratio)},
        {"peer": "torch", "ms": spread(ms * 2), "ratio": spread(0.5)},
    ]
    return measurement("snapshot", ms, 32 << 20, **{"peers": peers, **more})


def profile(*cases: dict[str, Any]) -> Profile:
    return changed(whole(), measurements=list(cases))


def test_the_slow_cases_are_counted_and_the_slowest_of_each_operation_is_named() -> None:
    other = {**case(ratio=7.0), "operation": "view", "id": "view/model"}
    found = findings.sentences(profile(case(ratio=3.0), case(ratio=1.6), case(ratio=1.4), other))
    where = "on this machine (Example CPU, 2 cores)"
    assert found[0] == f"3 of 4 cases take more than 1.5 times the time of the fastest peer {where}."
    assert [s.split(" (")[0] for s in found[1:]] == ["view", "snapshot"] and "3 times numpy's time" in found[2]


def test_where_nothing_is_slow_nothing_is_named() -> None:
    assert len(findings.sentences(profile(case(ratio=1.5)))) == 1
    assert findings.sentences(profile(case(peers=[]))) == ["No case has a peer to compare with."]


def test_cases_of_two_modes_are_named_those_first_that_are_furthest_apart() -> None:
    near, far = ([{"ms": 10.0, "rounds": 5}, {"ms": slow, "rounds": 4}] for slow in (15.0, 20.0))
    other = {**case(modes=far), "operation": "view", "id": "view/model"}
    *_, one = findings.sentences(profile(case(), case(modes=near)))
    assert one.startswith("1 case has times of two groups") and "10.0 ms (5 of 9) or 15.0 ms (4 of 9)." in one
    *_, two = findings.sentences(profile(case(modes=near), other))
    assert two.startswith("2 cases have times of two groups, so the median says little: view (")
    *_, many = findings.sentences(profile(*[case(modes=near, peers=[])] * 6))
    assert many.startswith("6 cases") and many.endswith("; and 2 more.")
    assert not any("two groups" in sentence for sentence in findings.sentences(profile(case())))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"host_ms": spread(3.0)}, "the call alone takes 3.00 ms of 4.00 ms"),
        (
            {"host_ms": spread(3.0), "metered": {"launches": 3.0}},
            "the call alone takes 3.00 ms of 4.00 ms, to launch 3 kernels",
        ),
        (
            {"host_ms": spread(3.0), "metered": {"launches": 1.0}},
            "the call alone takes 3.00 ms of 4.00 ms, to launch 1 kernel",
        ),
        (
            {"host_ms": spread(3.0), "metered": {"launches": 1.0625}},
            "the call alone takes 3.00 ms of 4.00 ms, to launch 1.1 kernels on average",
        ),
        (
            {"metered": {"device_to_host": 4096.0}, "host_ms": spread(3.0)},
            "4.00 KiB cross to the host at 8.39 GB/s",
        ),
        ({"metered": {"device_to_host": 4096.0}, "rate": None}, "4.00 KiB cross to the host"),
        ({"fraction": spread(0.4)}, "its kernels reach 0.40 of the copy limit"),
        ({"fraction": spread(0.9), "metered": {"allocations": 1.0}}, "it allocates memory in each operation"),
        ({"fraction": spread(0.9)}, "the device is near its limit"),
        ({"fraction": None}, "its kernels take the time"),
    ],
)
def test_the_reason_is_what_was_counted_and_timed(more: dict[str, Any], words: str) -> None:
    assert findings.why(convert(case(**{"metered": None, **more}), Measurement)) == words


def test_the_host_is_no_reason_where_device_times_are_compared() -> None:
    slow = case(ratio=2.0, host_ms=spread(3.0), metered=None, fraction=spread(0.4))
    for peer in slow["peers"]:
        peer["on_device"] = True
    assert findings.why(convert(slow, Measurement)) == "its kernels reach 0.40 of the copy limit"


@pytest.mark.parametrize(
    ("ratio", "words"),
    [(1.64, "1.6 times"), (99.4, "99 times"), (1185.7, "1,186 times"), (16842.6, "16,843 times")],
)
def test_a_ratio_has_two_digits_or_is_whole(ratio: float, words: str) -> None:
    assert f": {words} numpy's time;" in findings.sentences(profile(case(ratio=ratio)))[1]


@pytest.mark.parametrize(
    ("chapters", "flops", "words"),
    [
        ({"attention": {"level": "storage"}}, 9, "its kernels, which sum in strict order, reach"),
        ({"attention": {"level": "storage"}}, 0, "its kernels reach"),
        ({"attention": {"level": "visible"}}, 9, "its kernels reach"),
        ({"attention": "storage"}, 9, "its kernels reach"),
        ([], 9, "its kernels reach"),
    ],
)
def test_strict_attention_is_a_reason(chapters: Any, flops: int, words: str) -> None:
    found = profile(case(fraction=spread(0.2), metered=None, flops=flops))
    found.adapter["chapters"] = chapters
    assert [row[-1] for row in findings.rows(found)] == [f"{words} 0.20 of the copy limit"]


def test_every_slow_case_has_its_reason_in_every_form() -> None:
    cases = [{**case(ratio=ratio), "id": f"of {ratio}"} for ratio in (1.6, 3.0, 1.4, 2.0)]
    found = profile(*cases)
    assert [row[0] for row in findings.rows(found)] == ["of 3.0", "of 2.0", "of 1.6"]
    reason = findings.rows(found)[0][-1]
    for form in ("table", "markdown"):
        assert output.text([found], form).count(reason) == 4, f"{form}: of the operation, and of each case"
    assert Page(profile_html.render(found)).text.count(reason) == 4
    assert findings.HEAD[0] not in output.text([profile(case(ratio=1.5))], "markdown")


def test_what_got_slower_is_on_top_in_every_form() -> None:
    before = profile({**case(4.0), "id": "a"}, {**case(4.0), "id": "b"}, {**case(4.0), "id": "c"})
    now = profile({**case(2.0), "id": "a"}, {**case(9.0), "id": "b"}, {**case(4.1), "id": "c"}, case())
    assert [row[0] for row in comparison.rows(before, now)] == ["b", "c", "a"]
    assert comparison.rows(before, now)[0] == ["b", "4.00 ms", "9.00 ms", "2.25", "numpy", "2.00", "0.19 copy", WHY]
    assert [row[-1] for row in comparison.rows(before, profile({**case(ratio=1.4), "id": "a"}))] == [""]
    told = "Of 3 cases in both, 1 got slower and 1 faster by more than their quartiles; 1 are new and 0 are gone."
    assert comparison.summary(before, now) == told
    for form in ("table", "markdown"):
        text = output.text([before, now], form)
        assert told in text and text.index("2.25") < text.index("0.50"), form
    page = Page(profile_html.render(now, before))
    assert told in page.text and [a["class"] for a in page.named("td") if a.get("class") == "heat2"]
    assert "Since" not in Page(profile_html.render(now)).text


@pytest.mark.parametrize("form", ["table", "markdown"])
def test_it_is_said_that_lower_is_better(form: str) -> None:
    assert "Lower is better" in output.text([whole()], form)


def test_it_is_said_on_the_page_too() -> None:
    page = Page(profile_html.render(whole())).text
    assert "lower is better" in page and "cases take more than 1.5 times" in page
