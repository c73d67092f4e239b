"""In place of a package that is absent: names that can be imported, and fail if they are called."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class Absent:
    """A function of a package that is not here, or a group of them."""

    def __init__(self, name: str, why: str) -> None:
        self.__name__, self.why = name, why

    def __call__(self, *_: object, **__: object) -> None:
        raise RuntimeError(f"{self.__name__} is not here: {self.why}")

    def __getattr__(self, name: str) -> Absent:
        return _of(self.__name__, self.why)(name)


def _of(owner: str, why: str) -> Callable[[str], Absent]:
    def absent(name: str) -> Absent:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{owner}.{name}", why)

    return absent


class _Finder(MetaPathFinder, Loader):
    """Finds each module below a package."""

    def __init__(self, package: str, why: str) -> None:
        self.package, self.why = package, why

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        below = fullname.startswith(f"{self.package}.")
        return ModuleSpec(fullname, self, is_package=True) if below else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = ModuleType(spec.name)
        module.__dict__.update(__path__=[], __getattr__=_of(spec.name, self.why))
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is in it."""


def stand_in(package: str, why: str) -> Callable[[str], Absent]:
    """Let each module below a package be found; give the `__getattr__` of the package."""
    sys.meta_path.append(_Finder(package, why))
    return _of(package, why)
