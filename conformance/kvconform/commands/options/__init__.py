"""The commands of `kvconform` and their options. The modules of the commands import much; this one imports little,
so that `--help` is quick."""

from __future__ import annotations

from argparse import ArgumentParser
from importlib import import_module
from typing import NamedTuple

__all__ = ["COMMANDS", "GROUPS", "Command"]


class Command(NamedTuple):
    """One command: its line in the help of all, the module here and the function in it that add its options, and
    the package whose `commands` has it. All are found by name: a run imports no other command's options, and
    neither the workshop nor the instruments."""

    help: str
    options: str
    room: str = "kvconform"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options of the command."""
        module, _, name = self.options.partition(".")
        getattr(import_module(f"{__name__}.{module}"), name)(parser)


GROUPS: dict[str, dict[str, Command]] = {
    "Judge": {
        "demo": Command("see a failure: judge a small ring that has one bug", "judge.demo"),
        "new-adapter": Command("write the skeleton of an adapter package", "judge.new_adapter"),
        "smoke": Command("try a new adapter in a few steps, and propose a claim", "judge.smoke"),
        "run": Command("judge an adapter, or a whole serving engine", "judge.run"),
        "check": Command("judge an engine by its log, without an adapter", "judge.check"),
        "replay": Command("replay one trace step by step, and draw it", "judge.replay"),
        "probe": Command("write a checkpoint whose logits say what queries see", "judge.probe"),
        "ask": Command("ask an engine that loads this checkpoint what it sees", "judge.ask"),
        "profile": Command("measure the speed, beside peers and the device's limits", "suite.profile", "kvprofile"),
    },
    "Look up": {
        "explain": Command("show a clause: its rule, the reason, and examples", "records.explain"),
        "list": Command("list adapters, chapters or clauses", "records.list_"),
    },
    "Publish": {
        "report": Command("render records, several side by side", "records.report"),
        "diff": Command("say what broke, or was mended, between two records", "records.diff"),
        "board": Command("put the records of many caches on one board", "records.board"),
        "site": Command("write the spec as a site, with the verdicts of records", "records.site"),
        "vectors": Command("export traces for an engine's own tests", "records.vectors"),
    },
    "Test the suite itself": {
        "mutants": Command("plant known bugs, and show which test finds each", "suite.mutants", "kvworkshop"),
        "prove": Command("try every move from every state of small caches", "suite.prove", "kvworkshop"),
        "soak": Command("judge correct adapters on millions of operations", "suite.soak", "kvworkshop"),
        "new-chapter": Command(
            "write a chapter that holds as it stands, to be changed", "suite.new_chapter", "kvworkshop"
        ),
        "strict": Command("hash the outputs of strict attention, on each adapter", "suite.strict"),
    },
}
"""Every command, by what it is for, in the order of the help."""

COMMANDS = {name: command for commands in GROUPS.values() for name, command in commands.items()}
"""Every command; the module of each is in `commands` of its room."""
