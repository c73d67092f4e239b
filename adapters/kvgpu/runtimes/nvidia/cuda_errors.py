"""Errors of CUDA: which of them end the process, and which mean that nothing can run here."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

STICKY = {214, 700, 702, 710, *range(714, 720), 999}
"""Statuses after which every further call of the process fails: an illegal address, a fault of the device, ..."""

STATUS = 70
"""The exit status of a process that has lost its GPU."""

Method = TypeVar("Method", bound=Callable[..., Any])


class DeviceLost(SystemExit):
    """The process can do nothing more on its GPU, and ends. A judge takes that as a crash, and starts another."""


def classes(cupy: Any) -> tuple[type[Exception], ...]:
    """Give the exceptions of the runtime and of the driver."""
    return cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError


def fatal(method: Method) -> Method:
    """Make a method of a runtime end the process on a sticky error: otherwise every later trace would fail too. The
    runtime's `errors` are the classes of CUDA's exceptions."""

    @wraps(method)
    def call(self: Any, *args: Any) -> Any:
        try:
            return method(self, *args)
        except self.errors as e:
            raise lost(e) from e

    return cast(Method, call)


def lost(error: Exception) -> BaseException:
    """Give DeviceLost for a sticky error, and say so on standard error; else give the error."""
    if getattr(error, "status", None) not in STICKY:
        return error
    sys.stderr.write(f"the GPU is lost to this process: {error}\n")
    return DeviceLost(STATUS)
