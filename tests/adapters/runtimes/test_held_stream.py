"""The clock of a GPU: the stream is held until the work is queued, and never while the host waits for it."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from adapters.runtimes.test_capture import block, copy, seen
from kvgpu.adapter import Caches
from kvgpu.runtimes.nvidia import cupy, gpu_state, held_stream, nvrtc
from kvgpu.runtimes.nvidia.held_stream import MOST_QUEUED, HeldStream
from kvspec.errors import CannotRun
from support.fakes import fake_cupy


class Device:
    """A stream with a clock of its own: what is queued takes the seconds it says. It is stuck where it meets the
    kernel `hold` before the host let it go."""

    ptr = 5

    def __init__(self) -> None:
        self.now, self.queue, self.most = 0.0, list[Any](), 0
        self.held: HeldStream | None = None

    def launch(self, kernel: str, work: Any, args: tuple[int, ...], stream: int) -> None:
        assert stream == self.ptr
        self.queue.append(self.meet if kernel == "hold" else lambda: self.take(1e-6))

    def meet(self) -> None:
        assert self.held is not None and self.held._go[0] == 1, "the host waits, and the stream is held"

    def take(self, seconds: float) -> None:
        self.now += seconds

    def work(self, seconds: float) -> None:
        self.queue.append(lambda: self.take(seconds))
        assert self.held is not None
        self.held.queued()

    def wait(self) -> None:
        self.most = max(self.most, len(self.queue))
        while self.queue:
            self.queue.pop(0)()


class Event:
    reached = -1.0

    def record(self, stream: Device) -> None:
        self.stream = stream
        stream.queue.append(self.reach)

    def reach(self) -> None:
        self.reached = self.stream.now

    def synchronize(self) -> None:
        self.stream.wait()


@pytest.fixture
def device() -> Device:
    device = Device()
    cuda = SimpleNamespace(
        Event=Event,
        alloc_pinned_memory=fake_cupy.PinnedMemory,
        get_elapsed_time=lambda begin, end: 1e3 * (end.reached - begin.reached),
    )
    device.held = HeldStream(cuda, device.launch)
    return device


def test_the_stream_is_held_until_all_is_queued(device: Device) -> None:
    held = device.held
    assert held is not None

    def work() -> None:
        device.work(0.25)
        assert held._go[0] == 0 and len(device.queue) == 3, "hold, the first event, the work"
        with pytest.raises(AssertionError, match="is held"):
            device.queue[0]()
        device.work(0.5)

    assert held.elapsed(work, device) == pytest.approx(0.75)
    assert held.elapsed(lambda: None, device) == 0


def test_many_launches_are_timed_in_parts_that_a_stream_has_room_for(device: Device) -> None:
    assert device.held is not None
    n = 2 * MOST_QUEUED + 3
    found = device.held.elapsed(lambda: [device.work(0.001) for _ in range(n)] and None, device)
    assert found == pytest.approx(0.001 * n) and device.most == MOST_QUEUED + 3


def test_work_that_waits_lets_the_stream_go_before(device: Device) -> None:
    held = device.held
    assert held is not None

    def waits() -> None:
        device.work(0.25)
        held.release()
        device.wait()
        device.work(0.5)

    assert held.elapsed(waits, device) == pytest.approx(0.75)

    def forgets() -> None:
        device.work(0.25)
        device.wait()

    with pytest.raises(AssertionError, match="the host waits"):
        held.elapsed(forgets, device)


def test_work_that_fails_leaves_no_stream_held(device: Device) -> None:
    assert device.held is not None
    with pytest.raises(ZeroDivisionError):
        device.held.elapsed(lambda: 1 // 0 and None, device)
    for _ in range(MOST_QUEUED):
        device.held.queued()
    assert device.queue == [] and device.held.elapsed(lambda: device.work(1.0), device) == 1


def test_an_empty_launch_takes_the_least_that_was_measured(device: Device) -> None:
    assert device.held is not None
    assert device.held.least(device) == pytest.approx(1e-6)


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Held far longer than a test may take, so that a stream which nobody lets go is noticed."""
    monkeypatch.setattr(held_stream, "MOST_CYCLES", 1 << 40)
    with fake_cupy.installed():
        yield fake_cupy.runtime()


def test_every_call_that_waits_may_stand_in_measured_work(runtime: Any) -> None:
    a, b = block(runtime, 1), block(runtime, 2)

    def work() -> None:
        copy(runtime, a, b)
        runtime.upload(np.full(a.nbytes, 9, np.uint8), a)
        copy(runtime, a, b)
        runtime.synchronise()
        captured.replay()
        assert seen(runtime, b) == {9}

    captured = runtime.capture(lambda: copy(runtime, a, b))
    assert 0 < runtime.elapsed(work) < 10


def test_a_stream_goes_on_before_memory_of_the_host_is_copied(runtime: Any, monkeypatch: Any) -> None:
    """The driver may copy pages of the host only when the stream comes to them, and return after that."""
    a, copied = block(runtime, 1), []

    def noted(copy: Any) -> Any:
        return lambda *args: (copied.append(runtime._held._go[0]), copy(*args))

    for name in ("memcpyAsync", "memcpy2DAsync"):
        monkeypatch.setattr(runtime._cuda, name, noted(getattr(runtime._cuda, name)))
    for do in (
        lambda: runtime.upload(np.full(a.nbytes, 9, np.uint8), a),
        lambda: runtime.download(a, 0, 4),
        lambda: runtime.download(a, 0, 4, 2, 8),
    ):
        runtime.elapsed(do)
    assert set(copied) == {1} and len(copied) >= 3


def test_launches_of_a_runtime_are_counted_and_captured_ones_are_not(runtime: Any) -> None:
    a, b = block(runtime, 1), block(runtime, 2)
    queued = []

    def work() -> None:
        for do in (lambda: copy(runtime, a, b), lambda: runtime.capture(lambda: copy(runtime, a, b)), replay):
            do()
            queued.append(runtime._held._queued)

    replay = runtime.capture(lambda: copy(runtime, a, b)).replay
    runtime.elapsed(work)
    assert queued == [1, 1, 2]


def test_the_hosts_gaps_do_not_count(runtime: Any) -> None:
    a, b = block(runtime, 1), block(runtime, 2)
    runtime.elapsed(lambda: copy(runtime, a, b))
    assert min(runtime.elapsed(lambda: time.sleep(0.05) or copy(runtime, a, b)) for _ in range(3)) < 0.04


def test_the_clock_says_what_an_empty_launch_takes(runtime: Any) -> None:
    assert "while a kernel holds the stream" in runtime.clock
    assert 0 < float(runtime.clock.split(" takes ")[1].removesuffix(" us")) < 1e5


def test_a_stream_of_another_library_has_the_same_clock(runtime: Any) -> None:
    stream = fake_cupy.Stream(non_blocking=True)
    clock = Caches("any", runtime).clock_of(stream.ptr)
    assert clock is not None
    waits = runtime._stream.waits
    assert 0.05 <= clock(lambda: stream._enqueue(lambda: time.sleep(0.05))) < 5
    assert runtime._stream.waits == waits and stream.waits == 1


def test_a_stream_that_nobody_lets_go_goes_on_by_itself(runtime: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_stream, "MOST_CYCLES", 1000)
    assert runtime.elapsed(lambda: runtime._stream.synchronize()) < 5


def test_the_kernels_compile_for_a_gpu() -> None:
    try:
        cubin = nvrtc.compiled(held_stream.text(), "sm_90")
    except CannotRun as e:
        pytest.skip(f"{e}; `nox -s cubins` installs it and runs this")
    assert not cubin.lacks(held_stream.KERNELS)


ANSWER = "1980 MHz, 2619 MHz, 34, 120.50 W, 0x0000000000000024\n"


def test_the_state_of_a_gpu_is_said_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []

    def run(command: tuple[str, ...], **_: Any) -> Any:
        asked.append(command)
        return SimpleNamespace(stdout=ANSWER)

    monkeypatch.setattr(gpu_state.subprocess, "run", run)
    with fake_cupy.installed():
        found = Caches("any", cupy.CuPyRuntime()).state()
    assert found == {
        "GPU": "multiprocessors at 1980 MHz, memory at 2619 MHz, degrees 34, drawing 120.50 W, "
        "slowed down by the power limit and heat, by software"
    }
    assert "--id=0000:04:00.0" in asked[0]
    assert (
        gpu_state.told({"clocks.sm": "[N/A]", "clocks_throttle_reasons.active": "0x0"}) == "slowed down by nothing"
    )


def test_a_machine_without_nvidia_smi_has_no_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert gpu_state.state("0000:04:00.0") == {}
