"""The options of the commands that look up clauses, and show or publish records."""

from __future__ import annotations

import re
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path

from kvconform.commands.arguments import (
    add_format,
    add_known,
    add_unclaimed,
)
from kvconform.vectors import SOURCES


def list_(parser: ArgumentParser) -> None:
    """Add the options of `kvconform list`."""
    parser.add_argument("what", nargs="?", choices=("adapters", "chapters", "clauses"))
    add_format(parser)


def explain(parser: ArgumentParser) -> None:
    """Add the options of `kvconform explain`."""
    parser.add_argument("clause", help="an id such as CACHE-1, or a chapter such as RING")


def report(parser: ArgumentParser) -> None:
    """Add the options of `kvconform report`."""
    parser.add_argument(
        "records",
        nargs="+",
        metavar="RECORD",
        help="record.json, the journal of a run or of a profile, or two profile.json, the older first",
    )
    parser.add_argument("--html", metavar="FILE", help="write the page to this file")
    _add_spec(parser, "the Markdown of runs and mutants")
    add_unclaimed(parser)
    add_format(parser)


def diff(parser: ArgumentParser) -> None:
    """Add the options of `kvconform diff`."""
    parser.add_argument("old", metavar="OLD", help="the older record: record.json, or the journal of a run")
    parser.add_argument("new", metavar="NEW", help="the newer record of the same engine")
    _add_spec(parser, "the Markdown")
    add_format(parser)


def _add_spec(parser: ArgumentParser, where: str) -> None:
    parser.add_argument(
        "--spec", default="", metavar="ADDRESS", help=f"the folder of the chapters: ids in {where} are links to it"
    )


def board(parser: ArgumentParser) -> None:
    """Add the options of `kvconform board`."""
    parser.add_argument("records", nargs="+", metavar="RECORD", help="record.json of an engine's cache")
    add_known(parser)
    parser.add_argument(
        "--out", required=True, metavar="DIR", help="write README.md and board.html into this folder"
    )
    _add_spec(parser, "README.md")
    parser.add_argument("--badges", metavar="DIR", help="write a badge of each record, NAME.svg, into this folder")


def site(parser: ArgumentParser) -> None:
    """Add the options of `kvconform site`."""
    parser.add_argument("records", nargs="*", metavar="RECORD", help="record.json to show beside each clause")
    add_known(parser)
    parser.add_argument(
        "--repository", type=Path, metavar="DIR", help="a checkout of kvconform: adds its guides, bugs and history"
    )
    parser.add_argument(
        "--address",
        type=_address,
        metavar="URL",
        help="where the site will stand, https://...: adds sitemap.xml and the addresses that previews want",
    )
    parser.add_argument(
        "--older", type=_address, metavar="URL", help="where sites of older versions are: a link to it"
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="write the site into this folder")


def _address(text: str) -> str:
    """An address with a `/` at its end."""
    if not re.fullmatch(r"https?://[\w.:-]+(/[\w.~-]+)*/?", text):
        raise ArgumentTypeError(f"{text!r} is no address; write https://example.org/spec/")
    return text if text.endswith("/") else f"{text}/"


def vectors(parser: ArgumentParser) -> None:
    """Add the options of `kvconform vectors`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    export = actions.add_parser("export", help="write a folder of vectors that can be used without this project")
    export.add_argument("--out", required=True, metavar="DIR", help="where to write it")
    export.add_argument(
        "--verify", action="store_true", help="compare what is frozen with the reference first (takes a minute)"
    )
    for name, metavar, what in (
        ("c-header", "FILE", "one C header"),
        ("npm", "DIR", "a package for npm"),
        ("crate", "DIR", "a crate"),
    ):
        language = actions.add_parser(name, help=f"write {what} with traces and what replays them")
        language.add_argument("--out", required=True, metavar=metavar, help="where to write it")
        language.add_argument("--chapter", action="append", default=[], help="growing or ring alone (both)")
    verify = actions.add_parser("verify", help="check that the reference still gives exactly these vectors")
    verify.add_argument("folder", nargs="?", metavar="DIR", help="an exported folder (the frozen vectors)")
    for action in (export, verify):
        action.add_argument("--chapter", action="append", default=[], help="only this chapter (repeatable)")
        action.add_argument(
            "--source", action="append", default=[], choices=SOURCES, help="only this source (repeatable)"
        )
