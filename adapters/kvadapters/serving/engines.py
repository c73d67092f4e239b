"""Serving engines that `kvconform run --engine` knows by name, one file each: a function that loads a probe."""

from __future__ import annotations

from importlib import import_module

from kvadapters.serving.driver import Driver
from kvspec.errors import BadInput, CannotRun

ENGINES = {
    "vllm": "kvadapters.serving.vllm:load",
    "transformers": "kvadapters.serving.transformers:load",
}
"""A name, and the function that it stands for."""


def opened(name: str, folder: str, dtype: str) -> Driver:
    """Load the probe of a folder into an engine: a name, or module:function. Raises BadInput or CannotRun."""
    module, colon, function = ENGINES.get(name, name).partition(":")
    if not colon:
        raise BadInput(f"unknown engine {name!r}; there are {', '.join(ENGINES)}, and module:function for your own")
    try:
        load = getattr(import_module(module), function)
    except ModuleNotFoundError as e:
        if name in ENGINES:
            raise CannotRun(f"{name} needs {e.name}: pip install it beside kvconform") from None
        raise BadInput(f"{name}: cannot be imported ({e})") from None
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
