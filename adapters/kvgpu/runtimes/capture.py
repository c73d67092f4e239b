"""Capturing: launches are noted instead of done, and done together later, as often as asked.

A runtime owns one `Recorder`, and asks it at the head of each of its methods. A runtime without graphs has nothing
else to do: what was recorded is its list of launches, started one after another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kvgpu.runtime import Block, Meter, Recorded, Work


class Launch(NamedTuple):
    """The arguments of one `Runtime.launch`."""

    kernel: str
    work: Work
    args: tuple[Any, ...]


class Recording(NamedTuple):
    """What was captured: the launches in order, and the bytes they said they move on the device.

    It holds its blocks, so that one which everybody else forgot is still there when it is replayed.
    """

    launches: tuple[Launch, ...]
    moved: int

    def check(self) -> None:
        """Raise RuntimeError if a block it works on was released: the memory may be somebody else's by now."""
        for kernel, _, args in self.launches:
            for i, arg in enumerate(args):
                if isinstance(arg, Block) and arg.handle is None:
                    raise RuntimeError(f"replay: argument {i} of {kernel} was released since; capture it anew")


class Recorder:
    """Whether a runtime is capturing, and what it has captured so far."""

    def __init__(self, meter: Meter) -> None:
        self.meter = meter
        self._launches: list[Launch] | None = None

    @property
    def capturing(self) -> bool:
        """Whether launches are noted."""
        return self._launches is not None

    def refuse(self, call: str) -> None:
        """Raise RuntimeError if the runtime is capturing: `call` is more than launching a kernel."""
        if self._launches is not None:
            raise RuntimeError(f"{call} while capturing: captured work may launch kernels, and nothing else")

    def takes(self, kernel: str, work: Work, args: tuple[Any, ...]) -> bool:
        """Note a launch if the runtime is capturing, and say whether it is."""
        if self._launches is None:
            return False
        self._launches.append(Launch(kernel, work, args))
        return True

    def record(self, work: Callable[[], None]) -> Recording:
        """Have `work` done while every launch is noted. The meter stays as it was: nothing moves until a replay."""
        self.refuse("capture")
        before, launches = self.meter.device_to_device, list[Launch]()
        self._launches = launches
        try:
            work()
            return Recording(tuple(launches), self.meter.device_to_device - before)
        finally:
            self._launches, self.meter.device_to_device = None, before


class Replayable:
    """A recording and the way to start it: what `Runtime.capture` gives, graph or no graph."""

    def __init__(self, recorder: Recorder, recording: Recorded, start: Callable[[], None]) -> None:
        self._recorder, self._recording, self._start = recorder, recording, start

    def replay(self) -> None:
        """Do it all once more; one launch to the meter."""
        self._recorder.refuse("replay")
        self._recording.check()
        self._start()
        self._recorder.meter.launches += 1
        self._recorder.meter.device_to_device += self._recording.moved


def recorded(recorder: Recorder, work: Callable[[], None], launch: Callable[[Launch], None]) -> Replayable:
    """Capturing for a runtime without graphs: a replay does `launch` for each launch, in order."""
    recording = recorder.record(work)

    def start() -> None:
        for each in recording.launches:
            launch(each)

    return Replayable(recorder, recording, start)
