"""Fresh copies of modules beside the usual ones, some of them with changed text.

A mutant has to live next to the sound reference that judges it. So its modules are executed again under their own
names, which are then given back.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.resources import files
from importlib.util import spec_from_loader
from types import CodeType, ModuleType


@cache
def text(name: str) -> str:
    """The source text of a module."""
    package, _, leaf = name.rpartition(".")
    return files(package).joinpath(f"{leaf}.py").read_text(encoding="utf-8")


@cache
def _code(name: str) -> CodeType:
    return compile(text(name), f"<{name} again>", "exec")


def loaded(
    entry: str, again: Collection[str], changed: Mapping[str, str], read: Callable[[ModuleType], object] = bool
) -> ModuleType:
    """The module `entry`, executed again like all named in `again`; those in `changed` with another text. What both
    share is read before, so that it is made of sound modules. `read` reads what `entry` would read later."""
    read(importlib.import_module(entry))
    with _aside(again), _found(again, changed):
        module = importlib.import_module(entry)
        read(module)
        return module


@contextmanager
def _aside(names: Collection[str]) -> Iterator[None]:
    """Take modules away, out of their packages too, and bring them back at the end."""
    kept = {n: _taken(n) for n in names}
    try:
        yield
    finally:
        for name, module in kept.items():
            _taken(name)
            if module is not None:
                sys.modules[name] = module
                setattr(_package(name), name.rpartition(".")[2], module)


def _taken(name: str) -> ModuleType | None:
    """A module, which can no longer be found. In its package an attribute would be found first."""
    vars(_package(name)).pop(name.rpartition(".")[2], None)
    return sys.modules.pop(name, None)


def _package(name: str) -> ModuleType:
    return importlib.import_module(name.rpartition(".")[0])


@contextmanager
def _found(names: Collection[str], changed: Mapping[str, str]) -> Iterator[None]:
    finder = _Again(names, changed)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Again(MetaPathFinder, Loader):
    """Finds the modules of some names, and executes them."""

    def __init__(self, names: Collection[str], changed: Mapping[str, str]) -> None:
        self.names, self.changed = names, changed

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return spec_from_loader(name, self) if name in self.names else None

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        changed = self.changed.get(name)
        exec(_code(name) if changed is None else compile(changed, f"<{name} changed>", "exec"), vars(module))
