"""Faults that are planted in SGLang's server: each is found, made short, drawn, and blamed on the clause that it
breaks; the server as it is is not accused.

Run by `nox -s engines-sglang`; elsewhere SGLang is not there, and these tests are skipped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from kvadapters.probe import Precision, Probe
from kvadapters.serving.http import Server
from kvconform.serving.run import Run
from tools import serving_engines
from tools.floors import ROOT

pytestmark = [
    pytest.mark.skipif(find_spec("sglang") is None, reason="sglang is not installed"),
    pytest.mark.filterwarnings("default"),
]

FAULTS = {
    "keys_without_parents": ("SERVE-3",),
    "found_after_eviction": ("SERVE-9",),
    "a_row_goes_back_while_it_runs": ("SERVE-9", "SERVE-10", "SERVE-12"),
    "one_page_too_many_matches": ("SERVE-3", "SERVE-4"),
}
"""A fault of `planted_sglang` or `patched_sglang`, and the clauses that it may be blamed on."""
SIZES = "block=16,blocks=32,chunk=32,sequences=4,longest=512,name=sglang"
PLUGIN = "[sglang.srt.plugins]\nplanted = adapters.serving.planted_sglang:plant\n"
UNCHECKED = "SGLANG_ENABLE_STRICT_MEM_CHECK_DURING_IDLE=0 SGLANG_UNIFIED_RADIX_TREE_CORE_BACKEND=python"
"""The tree in Python is patched. SGLang does not end where its own books are wrong: its answers must tell."""


@contextmanager
def started(folder: Path, fault: str = "") -> Iterator[Run]:
    """Start SGLang's server with a fault in it, which it loads as a plugin."""
    probe = Probe.of("llama", "full,full")
    probe.write(folder / "probe")
    plugin = folder / "plugin" / "planted-0.dist-info"
    plugin.mkdir(parents=True)
    (plugin / "METADATA").write_text("Metadata-Version: 2.1\nName: planted\nVersion: 0\n")
    (plugin / "entry_points.txt").write_text(PLUGIN)
    engine = serving_engines.engines()["engines-sglang"]
    words = f"env {UNCHECKED} PLANTED={fault} PYTHONPATH={plugin.parent}:{ROOT / 'tests'}:"
    command = engine["server"].replace("env PYTHONPATH=", words) + " " + engine["forms"]["pages"]["server"]
    with serving_engines.started(command, "/v1/models", folder / "probe", folder / "server.log") as address:
        yield Run(probe, Server(address, str(folder / "probe"), probe, SIZES), Precision("f32"))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found_drawn_and_named(fault: str, tmp_path: Path) -> None:
    with started(tmp_path, fault) as run:
        run.go(500, 1)
    assert run.failures and run.asked < 500, (run.asked, run.gone)
    failure = run.failures[0]
    print(failure.clause, run.asked, failure.history, *failure.drawing, *failure.found, sep="\n")
    assert failure.clause in FAULTS[fault], failure
    assert failure.alone and failure.history.count("ask") + failure.history.count("submit") <= 6
    assert any(line.startswith("  ^ ") for line in failure.drawing), failure


def test_sglang_as_it_is_is_not_accused(tmp_path: Path) -> None:
    with started(tmp_path) as run:
        run.go(80)
    assert run.failures == [] and run.wrong_histories == 0 and not run.gone
    assert run.player.counts["cached tokens told"] > 0
