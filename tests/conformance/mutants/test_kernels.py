"""Mutants of the kernels' text: how they are made, and that no fault of a kernel harms whoever looks for it."""

from __future__ import annotations

import re
from itertools import islice

import pytest

from kvconform.bugs.mutant import Mutant
from kvconform.bugs.trace_sources import Hints, examples
from kvconform.runner.pool import opened
from kvgpu import kernels as texts
from kvspec.contract import CHAPTERS
from kvworkshop import hunt_tasks
from kvworkshop.hunt import HuntResult, _Hunter
from kvworkshop.systematic import equivalents, kernel_operators, kernels
from kvworkshop.systematic.kernels import Changed, Chunk
from support.slow import counts, one_in


def planted(label: str, was: str, now: str) -> Mutant:
    """A mutant of a text with this done to it."""
    part = kernels.PARTS[label]
    text = texts.text(part.text)
    assert text.count(was) == 1
    adapter = Changed((Chunk(label, (text.replace(was, now),)),))
    return Mutant(
        f"{was}: {now}", "systematic", now, (), adapter, chapters=part.chapters[:1], own_process=True, limit=2
    )


def hunt(mutant: Mutant, hints: Hints, first: bool) -> HuntResult:
    """What comes of the worked examples of its first chapter."""
    kill = _Hunter(mutant).first("examples", iter(examples(mutant.chapters[0])))
    return HuntResult(mutant.id, {"examples": kill}, kill)


def found(*mutants: Mutant) -> list[HuntResult]:
    """What comes of them, one after another."""
    with pytest.MonkeyPatch.context() as patched, opened(1) as pool:
        patched.setattr(hunt_tasks, "hunt", hunt)
        return list(hunt_tasks.all_of(mutants, pool))


def test_every_text_of_the_program_has_faults_whose_ids_differ() -> None:
    mutants = list(kernels.mutants())
    assert len({m.id for m in mutants}) == len(mutants)
    assert {m.place for m in mutants} == {(label,) for label in kernels.PARTS}
    assert {*texts.PLAIN, *texts.SEVERAL.values(), *texts.ROWS} == {p.text for p in kernels.PARTS.values()}


def test_every_kernel_that_a_text_names_is_renamed_in_its_copies() -> None:
    for part in (p for p in kernels.PARTS.values() if p.text in texts.PLAIN):
        assert {*re.findall(r"^KERNEL ([a-z]\w*)\(", texts.text(part.text), re.MULTILINE)} <= {*part.kernels}


def test_every_kernel_of_a_text_is_made_of_it() -> None:
    for label, part in kernels.PARTS.items():
        program = Chunk(label, (texts.text(part.text).replace("for (", "for (int its_own; "),)).text()
        assert all(re.search(rf"#define {kernel} {kernel}_0\b", program) for kernel in part.kernels)


def test_argued_faults_are_there() -> None:
    ids = {m.id for m in kernels.mutants()} | {re.sub(r" #\d+$", "", m.id) for m in kernels.mutants()}
    argued = {key for key in equivalents.arguments() if key[0] in kernels.PARTS}
    assert argued
    assert not argued - set(map(equivalents.key, ids))


TEXT = """
/* 1 + 1 < 2 */
KERNEL adds(GLOBAL u32 *to, i64 n) {
  for (i64 i = GROUP(2); i < n && n != 0; i += 2)
    if (to[i] > 7) to[i] = FMA(to[i], 3.0f, n ? 0 : 0x10u);
  MEET();
}
"""

FAULTS = """2 became 0 in i64 i = GROUP(2)
< became <= in i < n
&& became || in i < n && n != 0
!= became == in n != 0
0 became 1 in n != 0
+= became -= in i += 2
2 became 3 in i += 2
if (to[i] > 7): never
if (to[i] > 7): always
> became >= in to[i] > 7
7 became 8 in to[i] > 7
lost: to[i] = FMA(to[i], 3.0f, n ? 0 : 0x10u)
FMA rounds twice in to[i] = FMA(to[i], 3.0f, n ? 0 : 0x10u)
3.0 became 3.0029999999999997 in 3.0f
? never in n ? 0
? always in n ? 0
0 became 1 in 0
0x10 became 0x11 in 0x10u
lost: MEET()"""


def test_faults_of_a_text() -> None:
    faults = list(kernel_operators.faults("adds.inc", TEXT))
    assert "\n".join(f.what for f in faults) == FAULTS
    assert {f.function for f in faults} == {"adds"}
    assert all(f.text != TEXT and f.text.startswith("\n/* 1 + 1 < 2 */") for f in faults)
    assert faults[0].text == TEXT.replace("GROUP(2)", "GROUP(0)")
    assert "if (false) to[i]" in faults[7].text and "if (true) to[i]" in faults[8].text


def test_the_kernels_as_they_are_live_and_a_fault_dies() -> None:
    right, wrong = found(*(planted("kernels/tables", "(page + i)", now) for now in ("(i + page)", "(page - i)")))
    assert not right.killed
    assert wrong.killed and "took" not in wrong.shortest.message  # type: ignore[union-attr]


@pytest.mark.parametrize("every", counts(3, 1))
@pytest.mark.parametrize("further", one_in(len(kernels.SHAPES), range(len(kernels.SHAPES))))
def test_the_kernels_as_they_are_do_all_their_work_in_every_shape(
    further: int, every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every run each chapter has one shape, and each shape some chapters: of each a share of the examples."""
    sound = Mutant("sound", "control", "", (), Changed(()), chapters=CHAPTERS, is_control=True)
    shapes = kernels.SHAPES
    for number, chapter in enumerate(CHAPTERS):
        shape = shapes[(number + further) % len(shapes)]
        monkeypatch.setattr(kernels, "SHAPES", (shape,))
        assert _Hunter(sound).first("examples", islice(examples(chapter), 0, None, every)) is None, shape


@pytest.mark.slow
def test_a_kernel_that_never_ends_or_writes_anywhere_harms_no_other() -> None:
    was = "if (ITEM(0) == 0) table"
    hangs = planted("kernels/tables", was, f"for (;;) {was}")
    writes = planted("kernels/tables", was, "for (i64 x = 0; x < 1 << 30; ++x) table[x] = -1, table")
    right = planted("kernels/tables", "(page + i)", "(i + page)")
    ends = found(hangs, writes, right)
    assert [e.killed for e in ends] == [True, True, False]
    assert "status -27" in ends[0].shortest.message  # type: ignore[union-attr]


@pytest.mark.parametrize("label", one_in(2, ["kernels/move", "kernels/attend"]))
def test_what_is_launched_is_the_changed_kernel(label: str) -> None:
    start = "i64 part = GROUP(2)" if label == "kernels/move" else "i64 entry = GROUP(2)"
    (nothing,) = found(planted(label, start, f"{start} + (i64(1) << 40)"))
    assert nothing.killed
