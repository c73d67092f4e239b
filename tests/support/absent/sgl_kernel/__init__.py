"""In place of SGLang's kernels, which its package for a CPU lacks: names that can be imported, and fail if they are
called. With torch's own attention SGLang calls none of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

__version__ = "0.4.10"
__path__: list[str] = []


class Absent:
    """A kernel, or a group of them, that is not here."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, *_: object, **__: object) -> None:
        raise RuntimeError(f"sgl_kernel.{self.__name__} is not here: SGLang has no kernels for a CPU on PyPI")

    def __getattr__(self, name: str) -> Absent:
        return _absent(f"{self.__name__}.{name}")


def _absent(name: str) -> Absent:
    if name.rpartition(".")[2].startswith("__"):
        raise AttributeError(name)
    return Absent(name)


__getattr__: Callable[[str], Absent] = _absent


class _Finder(MetaPathFinder, Loader):
    """Finds each module below this one."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self, is_package=True) if fullname.startswith(f"{__name__}.") else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = ModuleType(spec.name)
        module.__dict__.update(__path__=[], __getattr__=_absent)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is in it."""


sys.meta_path.append(_Finder())
