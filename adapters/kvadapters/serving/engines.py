"""Serving engines in this process, for `kvconform run --engine`: a function loads a probe and gives a driver."""

from __future__ import annotations

from importlib import import_module

from kvadapters.serving.driver import Driver
from kvspec.errors import BadInput


def opened(name: str, folder: str, dtype: str) -> Driver:
    """Load the probe of a folder into an engine, by module:function. Raises BadInput."""
    module, colon, function = name.partition(":")
    if not colon:
        raise BadInput(f"unknown engine {name!r}; write module:function, which takes a folder and a dtype")
    try:
        load = getattr(import_module(module), function)
    except (ImportError, AttributeError) as e:
        raise BadInput(f"{name}: cannot be imported ({e})") from None
    try:
        driver = load(folder, dtype)
    except (OSError, ValueError, KeyError, TypeError) as e:
        said = " ".join(f"{type(e).__name__}: {e}".split())[:300]
        raise BadInput(f"{name} cannot load {folder} in {dtype} ({said})") from None
    if not isinstance(driver, Driver):
        raise BadInput(f"{name} gives a {type(driver).__name__}; it must give a kvadapters.serving.driver.Driver")
    return driver
