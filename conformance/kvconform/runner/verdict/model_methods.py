"""Methods of the models of known deviations: whether each can be called as the one in whose place it stands."""

from __future__ import annotations

from inspect import isfunction, signature
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


def _needs(method: FunctionType) -> list[str]:
    """The arguments that a method must be given, beside the object."""
    given = signature(method).parameters.values()
    return [each.name for each in given if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD][
        1:
    ]


def _takes(method: FunctionType, handed: list[str]) -> bool:
    """Whether a method can be given so many arguments."""
    try:
        signature(method).bind(None, *handed)
    except TypeError:
        return False
    return True
