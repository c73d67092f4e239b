"""Adapters of released engines, where these are installed: what they deviate in is known, and nothing else."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from kvadapters.find import ENGINES, load
from kvconform.runner.verdict import known
from kvspec.errors import CannotRun
from support.running.judging import broken, record_of

ROOT = Path(__file__).parents[2]
PACKAGES = {"mlx": "mlx_lm", "mlxvlm": "mlx_vlm", "llama": "llama_cpp"} | {
    name: name
    for name in ("transformers", "onnx", "onnxruntime", "litgpt", "executorch", "torchtune", "flax", "vllm")
}
"""The package of an engine, by the first word of its adapters and scripts."""

SENSELESS = {"CACHE-7", "CACHE-9", "CACHE-2", "CACHE-3"}
"""Clauses on senseless arguments, and on what is left after an error."""
HALF = {"RING-1", "RING-3", "CACHE-5"}
"""A row lost after an error."""
SINK = SENSELESS | {"SINK-4", "SINK-17", "SINK-21", "CACHE-5", "CACHE-10"}
"""Sinks that later queries of a chunk do not see, and senseless arguments."""
RAGGED = SENSELESS | {f"RAGGED-{n}" for n in (9, 15, 19, 22, 23, 30)}
"""Senseless arguments, and sequences of a batch that holds nothing."""
LAYERS = {"CACHE-2", *(f"LAYER-{n}" for n in (1, 3, 4, 5, 6, 8, 12))}
"""Senseless arguments, and what layers show after an error, or where one of them has lost rows that it needs."""
NO_ROWS = {"CACHE-1", "MASK-16"}
"""Updates of no rows."""
BACK = {"LAYER-15", "LAYER-16", "LAYER-17", "LAYER-37", "CACHE-8", "CACHE-9"}
"""Layers that go back without what they need, or not as one."""
EMPTY = {"CACHE-1", "MASK-16", "MASK-2"}
"""Updates with no rows, which give a geometry."""
LENT = {"CACHE-4", "CACHE-8", "MASK-2", "MASK-8", "RING-2", "RING-17", "SINK-1", "SINK-3", "SINK-5"}
"""Arrays that are the cache's and the caller's; and rows that a full ring loses to an update with no rows."""
BROKEN = {
    "mlx-growing": SENSELESS | EMPTY | LENT | {"GROW-1", "GROW-2", "GROW-5"},
    "mlx-batch": SENSELESS | EMPTY,
    "mlx-chunked": SENSELESS | EMPTY,
    "mlx-rotating": SENSELESS | HALF | EMPTY | LENT,
    "mlx-rotating-keep": SINK | EMPTY | LENT,
    "mlx-batch-rotating": SENSELESS | HALF | EMPTY | LENT,
    "mlx-ragged": RAGGED | HALF | EMPTY | LENT | {"GROW-1", "GROW-2", "GROW-5"},
    "transformers-dynamic": SENSELESS | NO_ROWS,
    "transformers-static": SENSELESS | NO_ROWS | {"BOUNDED-2", "BOUNDED-19"},
    "transformers-sliding": SENSELESS | HALF | NO_ROWS | {"RING-6", "MASK-2", "MASK-8"},
    "transformers-static-sliding": SENSELESS | NO_ROWS | {"RING-10"},
    "mlx-layers": LAYERS | {"LAYER-7", "LAYER-17", "LAYER-36", "CACHE-1", "CACHE-4", "CACHE-7", "CACHE-9"},
    "transformers-layers": LAYERS | {"CACHE-1", "LAYER-15", "LAYER-16", "LAYER-17", "LAYER-36", "CACHE-9"},
    "transformers-layers-recording": LAYERS | BACK | {"CACHE-1", "LAYER-18", "LAYER-33", "LAYER-36"},
    "transformers-layers-static": {"CACHE-1", "CACHE-7", "LAYER-1", "CACHE-2", "LAYER-12", "LAYER-32"} | BACK,
}
"""The clauses that a run may find broken; `reports/deviations/README.md` says how."""


def engine_of(name: str) -> str:
    return name.replace("_", "-").partition("-")[0]


def needs(name: str) -> None:
    package = PACKAGES[engine_of(name)]
    if find_spec(package) is None:
        pytest.skip(f"{package} is an extra: nox -s engines, or engines-{engine_of(name)}, installs it")


@pytest.mark.parametrize("name", BROKEN)
def test_an_engine_deviates_in_nothing_but_what_is_known(name: str) -> None:
    needs(name)
    seen = record_of(name, ("growing", "ring", "bounded", "mask", "sink", "ragged", "layers"), traces=2)
    assert broken(seen) <= BROKEN[name] and seen.problems == []


@pytest.mark.parametrize("name", [n for n in ENGINES if engine_of(n) not in ("mlx", "transformers")])
def test_every_failure_of_an_engine_is_filed(name: str) -> None:
    needs(name)
    seen = record_of(name, ("growing", "ring", "bounded", "mask"), traces=2)
    filed = [k for k in known.read(ROOT / "reports" / "deviations" / "kvconform.toml") if k.names(name)]
    other = [f.message for f in seen.failures if set(f.clauses) - set(known.explanations(filed, f))]
    assert other == [] and seen.problems == []


def test_rows_that_mlx_trimmed_come_back() -> None:
    needs("mlx")
    seen = record_of("mlx-concatenate", ("growing", "mask"), traces=2)
    (first, *_) = [f for f in seen.failures if "GROW-1" in f.clauses]
    assert "rewind 0" in first.words and "expected b" in first.message


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_that_is_not_installed_is_named_with_its_extra(name: str) -> None:
    if find_spec(PACKAGES[engine_of(name)]) is not None:
        pytest.skip("it is installed")
    with pytest.raises(CannotRun, match="pip install 'kvconform\\["):
        load(name)
