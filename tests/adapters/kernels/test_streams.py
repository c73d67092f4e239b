"""The kernels by which limits are measured do all of their work, on every runtime, and their clocks tell it."""

from __future__ import annotations

import time
from functools import cache
from typing import Any

import numpy as np
import pytest

from kvadapters.reference import Reference
from kvgpu import kernels, timing
from kvgpu.adapter import Caches
from kvgpu.runtime import Work
from kvgpu.runtimes import launch_shapes
from kvgpu.runtimes.cuda_cpu import CudaCPURuntime
from kvgpu.runtimes.opencl import OpenCLRuntime
from kvgpu.timing import NEVER, WIDTHS, Ends
from kvspec.geometry import Config
from kvspec.traffic import downloaded
from support.fakes import fake_cupy

RUNTIMES = {
    "opencl": cache(OpenCLRuntime),
    "opencl, as on a GPU": cache(lambda: OpenCLRuntime(shape=launch_shapes.gpu)),
    "cuda-cpu": cache(CudaCPURuntime),
    "cupy": fake_cupy.runtime,
}
LINES, WIDTH = 7, 100
BYTES = LINES * WIDTH * 16


@pytest.fixture(params=RUNTIMES)
def runtime(request: pytest.FixtureRequest) -> Any:
    made = RUNTIMES[request.param]()
    with fake_cupy.installed() if request.param == "cupy" else pytest.MonkeyPatch.context():
        made.learn(kernels.limits(made.dialect), kernels.LIMITS)
    return made


def stored(runtime: Any, content: Any = None) -> Any:
    """A block with a word to spare at its end, of these bytes or of others."""
    block = runtime.allocate(BYTES + 16)
    runtime.upload(np.full(BYTES + 16, 0x5A, np.uint8) if content is None else content, block)
    return block


def words(runtime: Any, block: Any) -> Any:
    return runtime.download(block, 0, BYTES + 16)[0].view(np.uint32)


def test_a_copy_copies_every_word_and_no_more(runtime: Any) -> None:
    content = np.random.default_rng(3).integers(0, 256, BYTES + 16, np.uint8)
    source, target = stored(runtime, content), stored(runtime)
    runtime.launch("stream_copy", Work(WIDTH, LINES), source, target, LINES, WIDTH)
    found = words(runtime, target)
    assert np.array_equal(found[:-4], content.view(np.uint32)[:-4]) and (found[-4:] == 0x5A5A5A5A).all()


def test_a_write_writes_every_word_and_no_more(runtime: Any) -> None:
    target = stored(runtime)
    runtime.launch("stream_write", Work(WIDTH, LINES), target, LINES, WIDTH, 77)
    found = words(runtime, target)
    assert (found[:-4] == 77).all() and (found[-4:] == 0x5A5A5A5A).all()


def test_what_fills_memory_looks_random(runtime: Any) -> None:
    target = stored(runtime)
    runtime.launch("stream_fill", Work(WIDTH, LINES), target, LINES, WIDTH)
    found = words(runtime, target)
    assert len(np.unique(found[:-4])) > 0.99 * found[:-4].size and (found[-4:] == 0x5A5A5A5A).all()
    share = np.unpackbits(found[:-4].view(np.uint8)).mean()
    assert 0.48 < share < 0.52


def test_a_read_reads_every_word() -> None:
    """One item reads all; what all words add up to is where it writes, so it must have come to that sum."""
    runtime = CudaCPURuntime(shape=lambda work: ((1, 1, 1), (1, 1, 1)))
    runtime.learn(kernels.limits("cuda"), kernels.LIMITS)
    content = np.random.default_rng(4).integers(0, 1 << 32, BYTES // 4 + 4, np.uint32)
    total = int(content[:-4].sum(dtype=np.uint64) % (1 << 32))
    for never, written in ((total, True), (total ^ 1, False)):
        source, target = stored(runtime, content.view(np.uint8)), stored(runtime)
        runtime.launch("stream_read", Work(WIDTH, LINES), source, target, LINES, WIDTH, never)
        found = words(runtime, target)
        assert (found[0] == content[:-4:4].sum(dtype=np.uint64) % (1 << 32)) == written
        assert (found[1:] == 0x5A5A5A5A).all()


def test_an_adapter_streams_as_many_bytes_as_it_says(runtime: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "stream_bytes", 1 << 20)
    with fake_cupy.installed():
        streams = Caches("any", runtime).streams(1 << 30)
    assert streams.nbytes == WIDTHS[-1] * 16 == 1 << 20 and streams.moved("copy") == 2 * streams.moved("read")
    for work in (streams.read, streams.write, streams.copy):
        assert runtime.elapsed(work) > 0
    assert NEVER < 1 << 32


def test_a_download_brings_the_beginning_of_the_source_to_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime: Any = fake_cupy.runtime()
    monkeypatch.setattr(runtime, "stream_bytes", 1 << 20)
    monkeypatch.setattr(timing, "DOWNLOADED", 1 << 18)
    pinned, real = list[Any](), runtime.pinned
    monkeypatch.setattr(runtime, "pinned", lambda nbytes: pinned.append(real(nbytes)) or pinned[-1])
    blocks, allocate = list[Any](), runtime.allocate
    monkeypatch.setattr(runtime, "allocate", lambda nbytes: blocks.append(allocate(nbytes)) or blocks[-1])
    with fake_cupy.installed():
        streams = Caches("any", runtime).streams(1 << 30)
    assert streams.limits == ["read", "write", "copy", "download"] and streams.moved("download") == 1 << 19
    assert streams.download is not None
    streams.download()
    runtime.synchronise()
    source = runtime.download(blocks[0], 0, 1 << 18)[0]
    assert len(np.unique(source)) == 256 and bytes(pinned[0].handle) == source.tobytes()


def test_a_device_whose_memory_is_the_hosts_is_held_against_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime: Any = RUNTIMES["opencl"]()
    monkeypatch.setattr(runtime, "stream_bytes", 1 << 20)
    streams, view = Caches("any", runtime).streams(1 << 30), downloaded(Config(), 3)
    assert runtime.pinned(64) is None and streams.download is None and "download" not in streams.limits
    assert view.limit == "download" and streams.limit(view) == "copy"
    assert streams._replace(download=streams.copy).limit(view) == "download"


def test_opencl_copies_to_memory_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime: Any = RUNTIMES["opencl"]()
    source = stored(runtime, np.arange(BYTES + 16, dtype=np.uint8))
    monkeypatch.setattr(runtime, "cpu", False)
    pinned = runtime.pinned(BYTES)
    monkeypatch.undo()
    runtime.copy(source, pinned)
    assert np.array_equal(runtime.download(pinned, 0, BYTES), runtime.download(source, 0, BYTES))


def test_every_way_to_write_and_to_copy_does_all_of_it(runtime: Any) -> None:
    words = 4 * WIDTHS[-1]
    ends = Ends(runtime, words, *(runtime.allocate(words * 16) for _ in "ab"))
    ends.fill()
    source, filled = whole(runtime, ends.source), whole(runtime, ends.target)
    for name in ("copy", "write"):
        for way in ends.ways(name):
            runtime.upload(filled, ends.target)
            way.work()
            found = whole(runtime, ends.target)
            assert np.array_equal(found, source) if name == "copy" else len(np.unique(found)) <= 4, way.words
    widths = {(way.words, way.words.startswith("in lines")) for way in ends.ways("read")}
    assert len(widths) == 5 + 4 + 2 and all(kernel for _, kernel in widths)


def whole(runtime: Any, block: Any) -> Any:
    return runtime.download(block, 0, block.nbytes)[0]


def test_the_fastest_way_is_the_limit(runtime: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = Ends(runtime, WIDTHS[-1], *(runtime.allocate(WIDTHS[-1] * 16) for _ in "ab"))
    for name, best in (("write", "by the device's fill"), ("read", "in lines of 64 KiB, 16 an item")):
        ways = [way._replace(work=lambda words=way.words: words) for way in ends.ways(name)]
        monkeypatch.setattr(Ends, "ways", lambda ends, name, ways=ways: ways)
        monkeypatch.setattr(runtime, "elapsed", lambda work, best=best: 1.0 + (work() != best))
        assert ends.fastest(name).words == best
        monkeypatch.undo()


def test_more_work_takes_longer_and_none_takes_next_to_nothing(runtime: Any) -> None:
    source, target = (runtime.allocate(1 << 22) for _ in range(2))
    lines = (1 << 22) // 16 // 256

    def copies(n: int) -> float:
        work = Work(256, lines)
        return float(
            runtime.elapsed(
                lambda: [runtime.launch("stream_copy", work, source, target, lines, 256) for _ in range(n)]
            )
        )

    copies(1)
    few, many = min(copies(1) for _ in range(5)), min(copies(16) for _ in range(2))
    assert many > 1.5 * few > 0 and min(runtime.elapsed(lambda: None) for _ in range(5)) < many


def test_the_host_is_timed_by_its_own_clock() -> None:
    adapter = Reference()
    assert adapter.elapsed(lambda: time.sleep(0.02)) >= 0.02
    adapter.synchronise()
    assert "wall time" in adapter.clock()


def test_what_the_host_does_meanwhile_is_no_device_time() -> None:
    assert RUNTIMES["opencl"]().elapsed(lambda: time.sleep(0.05)) < 0.01


def test_events_are_kept_only_while_somebody_asks() -> None:
    runtime = RUNTIMES["opencl"]()
    target = runtime.allocate(64)
    with pytest.raises(ZeroDivisionError):
        runtime.elapsed(lambda: 1 // 0)
    assert runtime._events is None
    runtime.upload(np.zeros(64, np.uint8), target)
    assert runtime._events is None
