"""Serving engines in this process, for `kvconform run --engine`: a function loads a probe and gives a driver."""

from __future__ import annotations

from pkgutil import iter_modules

from kvadapters.probe.engines import made
from kvadapters.serving import drivers
from kvadapters.serving.driver import Declared, Driver, Wanted
from kvspec.errors import BadInput


def opened(name: str, folder: str, dtype: str, rows: str | None, words: str) -> Driver:
    """Start an engine: the name of a file in `drivers`, or module:function. `words` are those of `--declare`: their
    sizes are what it is started with, too. Raises BadInput, or CannotRun where a named engine is not installed."""
    known = {each.name: f"{drivers.__name__}.{each.name}:driver" for each in iter_modules(drivers.__path__)}
    if ":" not in known.get(name, name):
        raise BadInput(f"unknown engine {name!r}; there are {', '.join(known)}, and module:function for your own")
    wanted = Wanted(folder, dtype, rows, **Declared(name).with_words(words).sizes())
    driver = made(name, known.get(name, name), wanted)
    if not isinstance(driver, Driver):
        raise BadInput(f"{name} gives a {type(driver).__name__}; it must give a kvadapters.serving.driver.Driver")
    had = driver.declared.sizes()
    driver.declared = driver.declared.with_words(words)
    if other := [n for n, size in driver.declared.sizes().items() if had[n] and size != had[n]]:
        raise BadInput(f"{name} has {other[0]}={had[other[0]]}; declare that, or leave it out")
    return driver
