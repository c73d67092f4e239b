"""Methods of the models of known deviations: whether each can be called as the one in whose place it stands."""

from __future__ import annotations

import math
from inspect import CO_VARARGS, isfunction
from types import FunctionType

from kvspec.errors import BadInput


def demand_arguments(made: type, name: str) -> None:
    """Refuse a method that cannot be called as the one in whose place it stands. Raises BadInput."""
    for number, own in enumerate(made.__mro__):
        for method, does in vars(own).items() if own.__module__ == made.__module__ else ():
            other = next((vars(base)[method] for base in made.__mro__[number + 1 :] if method in vars(base)), None)
            if isfunction(does) and isfunction(other) and not _takes(does, _needs(other)):
                takes, handed = (f"({', '.join(_needs(each))})" for each in (does, other))
                raise BadInput(f"model {name}: {own.__name__}.{method} takes {takes} where {handed} is handed in")


def _needs(method: FunctionType) -> tuple[str, ...]:
    """The arguments that a method must be given."""
    code, optional = method.__code__, len(method.__defaults__ or ())
    return code.co_varnames[1 : code.co_argcount - optional]


def _takes(method: FunctionType, handed: tuple[str, ...]) -> bool:
    """Whether a method can be given so many arguments."""
    most = math.inf if method.__code__.co_flags & CO_VARARGS else method.__code__.co_argcount - 1
    return len(_needs(method)) <= len(handed) <= most
