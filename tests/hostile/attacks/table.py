"""Judges attacks or right caches in several processes, keeps what is known, and prints the table and the rates."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

import msgspec

from hostile.attacks import bases, grammar, page
from hostile.attacks.judging import About, Found, judge
from hostile.attacks.witness import showing
from kvconform.runner.pool import opened
from kvconform.worker.tasks import completed
from kvspec.notation import sentence

FLOORS = {"quick": 0.90, "whole": 0.97}
"""The share of attacks that a run must find."""

LOOKS = 0.85
"""The share of attacks found by `--quick` whose clause to look at first must be right."""

LONGEST = 1800.0
"""Seconds that one cache may take."""

Do = Callable[[str, str], Found]
"""Judges the cache of an id in a mode."""


def attack(id_: str, mode: str) -> Found:
    """Judge one attack. A quick run goes to its end, so that it says what to look at first."""
    a = grammar.attacks()[id_]
    about = About(a.chapters, a.fields, a.trigger.sort == "order")
    return judge(id_, a.adapter(), mode, about, look=mode == "quick")


def right(id_: str, mode: str) -> Found:
    """Judge one right cache."""
    return judge(id_, next(b for b in bases.right() if b.name == id_).make(), mode)


DRAWN, MOST = 236, 192
"""Combinations that are tried as attacks, and how many of them become some."""


def shown(id_: str, _: str) -> str:
    """A trace that shows an attack; empty if none is found."""
    trace = showing.found(grammar.named(id_))
    return sentence(trace) if trace else ""


def choose(processes: int) -> int:
    """Choose attacks, find a trace for each, and write those that have one to the file."""
    ids = [a.id for a in grammar.chosen(DRAWN)]
    traces: dict[str, str] = {}
    with opened(processes, seconds=LONGEST) as pool:
        for (id_, _), future in completed(pool, shown, ((i, "") for i in ids)):
            traces[id_] = future.result()
            print(f"{id_}: {traces[id_] or 'no trace shows it'}", flush=True)
    kept = [i for i in ids if traces[i]][:MOST]
    head = "# Written by `python -m tools.attacks --choose`: each attack, and a trace that shows it.\n\n"
    lines = (f"{json.dumps(i)} = {json.dumps(traces[i])}\n" for i in kept)
    grammar.FILE.write_text(head + "".join(lines), encoding="utf-8")
    print(f"{len(kept)} attacks; of {len(ids)} combinations no trace shows {sum(not traces[i] for i in ids)}")
    return 0


def add(chapter: str, most: int, text: str = "") -> int:
    """Choose attacks on a chapter with a text in their words, of those that there are not yet, and write those that
    a trace shows behind the others."""
    wanted = (a.id for a in grammar.chosen(2 * most, chapter=chapter, text=text) if a.id not in grammar.attacks())
    found = ((id_, shown(id_, "")) for id_ in wanted)
    kept = list(islice(((id_, trace) for id_, trace in found if trace), most))
    with grammar.FILE.open("a", encoding="utf-8") as out:
        out.writelines(f"{json.dumps(id_)} = {json.dumps(trace)}\n" for id_, trace in kept)
    print("\n".join(id_ for id_, _ in kept))
    return 0


def results(file: Path) -> dict[str, Found]:
    """What is known from before, by id; a last line that was cut off is left out."""
    if not file.is_file():
        return {}
    lines = file.read_bytes().splitlines()
    known = (msgspec.json.decode(line, type=Found) for line in lines if line.endswith(b"}"))
    return {found.id: found for found in known}


def judged(ids: Sequence[str], mode: str, do: Do, file: Path, processes: int) -> list[Found]:
    """Judge what is not known yet, and write down each as it ends; with 0 processes in this one."""
    known = results(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as out:
        for found in known.values():
            out.write(msgspec.json.encode(found) + b"\n")
        for found in _new([i for i in ids if i not in known], mode, do, processes):
            known[found.id] = found
            out.write(msgspec.json.encode(found) + b"\n")
            out.flush()
            print(line(found), flush=True)
    return [known[i] for i in ids if i in known]


def _new(ids: Sequence[str], mode: str, do: Do, processes: int) -> Iterator[Found]:
    """Judge each; what cannot be judged to its end is told as an error."""
    if not processes:
        yield from (do(i, mode) for i in ids)
        return
    with opened(processes, seconds=LONGEST) as pool:
        for (id_, _), future in completed(pool, do, ((i, mode) for i in ids)):
            error = future.exception()
            yield Found(id_, mode, error=repr(error)) if error else future.result()


def line(found: Found) -> str:
    """One cache in a line."""
    seen = f"{found.source} after {found.operations}" if found.found else f"NOT FOUND, struck {found.struck} times"
    look = {
        True: f"{found.first} right",
        False: f"{found.first} WRONG, not of {' '.join(found.rightly[:6])}",
        None: "",
    }
    return f"{found.id}\n    {seen}, {found.seconds:g} s; {look[found.right]}{found.error and '; ' + found.error}"


def rates(found: Iterable[Found]) -> list[str]:
    """Shares of what was found, by chapter, trigger and effect."""
    of = grammar.attacks()
    rows: dict[str, list[Found]] = {}
    for each in found:
        a = of[each.id]
        for name in ("all", f"chapter {a.chapter}", f"trigger {a.trigger.sort}", f"effect {a.effect.sort}"):
            rows.setdefault(name, []).append(each)
    return [f"{name:32} {_share(rows[name])}" for name in sorted(rows)]


def _share(of: Sequence[Found]) -> str:
    looked = [f for f in of if f.right is not None]
    right_ = f", look first right {sum(bool(f.right) for f in looked)} of {len(looked)}" if looked else ""
    return f"found {sum(f.found for f in of):3} of {len(of):3} ({sum(f.found for f in of) / len(of):4.0%}){right_}"


def main(says: str | None, arguments: Sequence[str] | None = None) -> int:
    """Judge what is asked for; give the exit status. `says`: the help."""
    parser = argparse.ArgumentParser(description=says, formatter_class=argparse.RawDescriptionHelpFormatter)
    modes = parser.add_mutually_exclusive_group()
    for mode in ("quick", "whole"):
        modes.add_argument(f"--{mode}", dest="mode", action="store_const", const=mode, default="quick")
    parser.add_argument("--right", action="store_true", help="the right caches instead of the attacks")
    modes.add_argument(
        "--write", action="store_true", help="by --quick, by whole runs what that misses, and write the page"
    )
    parser.add_argument("--list", action="store_true", help="list them, and stop")
    parser.add_argument("--choose", action="store_true", help="choose the attacks anew, and stop")
    parser.add_argument(
        "--add", nargs=2, default=(), metavar=("CHAPTER", "N"), help="add attacks on a chapter, and stop"
    )
    parser.add_argument("--every", type=int, default=1, metavar="N", help="one in N (1)")
    parser.add_argument("--match", default="", metavar="TEXT", help="only those whose id contains this text")
    parser.add_argument("--into", type=Path, default=Path("kvconform-report/attacks"), metavar="DIR")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, metavar="N")
    options = parser.parse_args(arguments)
    if options.choose:
        return choose(options.processes)
    if options.add:
        return add(options.add[0], int(options.add[1]), options.match)
    every = [b.name for b in bases.right()] if options.right else list(grammar.attacks())
    ids = [i for i in every[:: options.every] if options.match in i]
    if options.list:
        print("\n".join(ids))
        return 0
    into, processes = options.into, options.processes
    if options.right:
        file = into / f"right-{options.mode}.jsonl"
        return told_right(judged(ids, options.mode, right, file, processes))
    if options.write:
        return told_both(*page.both(ids, partial(asked, into=into, processes=processes)))
    return told(asked(ids, options.mode, into, processes), options.mode)


def asked(ids: Sequence[str], mode: str, into: Path, processes: int) -> list[Found]:
    """Judge attacks in a mode, whose results have a file of their own."""
    return judged(ids, mode, attack, into / f"attacks-{mode}.jsonl", processes)


def told(found: Sequence[Found], mode: str) -> int:
    """Print the table and the rates; 1 where one is below its floor."""
    print("\n".join(map(line, found)))
    print("\n".join(rates(found)))
    return low(found, mode)


def told_both(quick: Sequence[Found], last: Sequence[Found]) -> int:
    """Print what a whole run was asked for, and the rates of the two; 1 where one is below its floor."""
    print("\n".join(line(found) for found in last if found.mode == "whole"))
    print("\n".join(rates(last)))
    return max(low(quick, "quick"), low(last, "whole"))


def low(found: Sequence[Found], mode: str) -> int:
    """1 where a rate is below its floor."""
    looked = [f for f in found if f.right is not None]
    few = sum(f.found for f in found) < FLOORS[mode] * len(found)
    wrong = mode == "quick" and sum(bool(f.right) for f in looked) < LOOKS * len(looked)
    return int(few or wrong)


def told_right(found: Sequence[Found]) -> int:
    """Print the right caches that fail; 1 where there is one."""
    failed = [f for f in found if f.found]
    print("\n".join(f"FAILS: {line(f)}\n    {f.message}" for f in failed))
    print(f"{len(found) - len(failed)} of {len(found)} right caches pass")
    return int(bool(failed))
