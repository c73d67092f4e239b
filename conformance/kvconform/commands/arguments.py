"""Arguments that several commands have, and the values that arguments may have."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError

FORMATS = ("table", "json", "markdown")


def add_pool(parser: ArgumentParser, help: str) -> None:
    """Add where tasks run: on how many processes here, or on a cluster."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--processes", type=above_zero, metavar="N", help=help)
    where.add_argument(
        "--on", metavar="ADDRESS", help="run on the dask cluster of this scheduler, such as tcp://host:8786"
    )


def add_format(parser: ArgumentParser) -> None:
    """Add the output format."""
    parser.add_argument("--format", choices=FORMATS, default="table", help="output format (table)")


def count(text: str) -> int:
    """Read a whole number of 0 or more. Raises ArgumentTypeError."""
    if not text.isdigit() or int(text) > 1 << 40:
        raise ArgumentTypeError(f"{text!r} is not a whole number of 0 or more")
    return int(text)


def above_zero(text: str) -> int:
    """Read a whole number of 1 or more. Raises ArgumentTypeError."""
    if (number := count(text)) == 0:
        raise ArgumentTypeError("it must be 1 or more")
    return number


def seconds(text: str) -> float:
    """Read a number of seconds above 0. Raises ArgumentTypeError."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e6:
        raise ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return number
