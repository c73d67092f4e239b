"""Serving engines in this process, for `kvconform run --engine`: a function loads a probe and gives a driver."""

from __future__ import annotations

from kvadapters.probe.engines import made
from kvadapters.serving.driver import Driver
from kvspec.errors import BadInput


def opened(name: str, folder: str, dtype: str) -> Driver:
    """Load the probe of a folder into an engine, by module:function. Raises BadInput."""
    if ":" not in name:
        raise BadInput(f"unknown engine {name!r}; write module:function, which takes a folder and a dtype")
    driver = made(name, folder, dtype)
    if not isinstance(driver, Driver):
        raise BadInput(f"{name} gives a {type(driver).__name__}; it must give a kvadapters.serving.driver.Driver")
    return driver
