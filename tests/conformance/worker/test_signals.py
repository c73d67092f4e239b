"""A signal is handled once it can be: what Python drops in a callback of the garbage collector comes again."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from typing import Any

import pytest

from kvconform.worker.signals import handling, interrupt


def test_an_exception_lost_in_a_callback_of_the_garbage_collector_comes_again(capfd: Any) -> None:
    lost = 2

    def callback(phase: str, info: dict[str, int]) -> None:
        nonlocal lost
        if phase == "stop" and lost:
            lost -= 1
            os.kill(os.getpid(), signal.SIGUSR2)

    def collect_twice() -> None:
        gc.collect()
        gc.collect()  # the second is lost too
        time.sleep(30)

    gc.callbacks.append(callback)
    try:
        with pytest.raises(KeyboardInterrupt), handling(interrupt, signal.SIGUSR2):
            collect_twice()
    finally:
        gc.callbacks.remove(callback)
    assert not lost and not capfd.readouterr().err


def test_what_no_signal_raised_is_told_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    told = list[BaseException]()
    monkeypatch.setattr(sys, "unraisablehook", lambda lost: told.append(lost.exc_value))

    class Failing:
        def __del__(self) -> None:
            raise ValueError

    before = signal.getsignal(signal.SIGUSR2)
    with handling(interrupt, signal.SIGUSR2):
        Failing()
    assert [type(e) for e in told] == [ValueError] and signal.getsignal(signal.SIGUSR2) is before


def test_further_interruptions_are_ignored_for_a_while() -> None:
    def interrupted() -> None:
        os.kill(os.getpid(), signal.SIGUSR2)

    with handling(interrupt, signal.SIGUSR2, deaf=0.2):
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                interrupted()
            interrupted()
            interrupted()  # both find nobody
            time.sleep(0.3)
