"""The sequences of llama.cpp's memory, asked in random lives: what is known of it is found, and nothing else."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from kvadapters.probe import Probe
from kvadapters.probe.asked import Verdict, asked
from kvadapters.probe.engines import loaded
from kvadapters.probe.lived import Lived
from kvadapters.probe.lives import Act
from kvadapters.probe.model import Model
from kvadapters.probe.reader.precision import Precision
from kvconform import cli

pytest.importorskip("llama_cpp")

DEFERRED = {"copy", "load"}, {"shift", "load"}
"""What llama.cpp puts off until the next decode, with what does not wait for it."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    found = {}
    for name, layers in (("qwen3", "full,full"), ("gemma3", "window 5,full"), ("llama4", "3*chunk 8192,full")):
        found[name] = str(tmp_path_factory.mktemp(name) / "probe")
        assert cli.main(["probe", name, "--layers", layers, "--format", "gguf", "-o", found[name]]) == 0
    return found


def verdict(engine: str, folder: str, precision: Precision, **more: Any) -> Verdict:
    return asked(Probe.load(folder), loaded(engine, folder, precision.dtype), precision, most=30, **more)


def acts(found: Verdict) -> list[set[str]]:
    return [{each.what for each in failure.history} - {"append"} for failure in found.failures]


def test_what_is_put_off_is_found(folders: dict[str, str]) -> None:
    found = verdict("llama-cpp", folders["qwen3"], Precision("f32"), lives=40)
    assert found.failures and all(each in DEFERRED for each in acts(found)), found.told()
    assert all(len(failure.history) <= 5 for failure in found.failures)


def test_a_shift_that_shows_in_a_copy_is_found(folders: dict[str, str]) -> None:
    found = verdict("llama-cpp-unified", folders["qwen3"], Precision("f32"), lives=20)
    assert {"copy", "shift"} in acts(found)
    assert all(each in ({"copy", "shift"}, {"shift", "load"}) for each in acts(found)), found.told()


@pytest.mark.parametrize("rows", ["q8_0", "q4_0"])
def test_rows_of_fewer_bits_are_read(rows: str, folders: dict[str, str]) -> None:
    found = verdict(f"llama-cpp-{rows}", folders["gemma3"], Precision("f16", rows), lives=0)
    assert found.failures == () and found.queries > 200


def test_llama_4_is_read_below_the_end_of_its_first_chunk(folders: dict[str, str]) -> None:
    found = verdict("llama-cpp", folders["llama4"], Precision("f32"), lives=0)
    assert found.failures == () and found.queries > 100, found.told()


def test_one_buffer_with_windows_is_clean(folders: dict[str, str]) -> None:
    """It cannot be shifted, and copies nothing that is put off."""
    found = verdict("llama-cpp-unified", folders["gemma3"], Precision("f32"), lives=20)
    assert found.failures == (), found.told()


def broken(model: Model, **faults: Any) -> Model:
    return Model(**(vars(model) | faults))


@pytest.mark.parametrize(
    ("fault", "life"),
    [
        ("drop", [Act("append", ("a", "b"), (3, 3)), Act("drop", ("a",)), Act("append", ("c",), (2,))]),
        ("rewind", [Act("append", ("a",), (5,)), Act("rewind", ("a",), (2,)), Act("append", ("a",), (1,))]),
    ],
)
def test_what_is_left_undone_is_found(fault: str, life: list[Act], folders: dict[str, str]) -> None:
    probe, right = Probe.load(folders["qwen3"]), loaded("llama-cpp", folders["qwen3"], "f32")
    undone = {"drop": lambda cache: cache.memory.free.insert(0, cache.number), "rewind": lambda cache, n: None}
    assert not Lived(probe, right, Precision("f32"), 0).through(life).wrong
    assert Lived(probe, broken(right, **{fault: undone[fault]}), Precision("f32"), 0).through(life).wrong


def test_a_memory_that_ends_in_a_cycle_ends_once(folders: dict[str, str]) -> None:
    """The context may end before its sequences, of which none asks it then."""
    model = loaded("llama-cpp", folders["qwen3"], "f32")

    class Ends:
        def __init__(self) -> None:
            self.cache, self.me = model.open(), self
            self.memory = self.cache.memory

        def __del__(self) -> None:
            assert model.drop is not None
            model.drop(self.cache)

    for _ in range(4):
        Ends()
        gc.collect()
    cache = model.open()
    cache.memory.context.__del__()
    assert model.drop is not None
    model.drop(cache)
