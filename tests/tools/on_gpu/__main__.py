"""Judge and measure the GPU caches on a machine that is lent for a few minutes: `python -m tools.on_gpu [MINUTES]`.

Run it in `tests/` of a checkout. It needs no network, no nox and no build; docs/guides/lent-gpu.md says what it
needs, and in which order it works.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tools.on_gpu import parts, wheels
from tools.on_gpu.log import Log
from tools.on_gpu.processes import Processes
from tools.on_gpu.session import Session

ROOT = Path(__file__).parents[3]
PACKAGES = ("spec", "reference", "adapters", "conformance", "reports", "docs/examples", "tests")
"""The folders of the checkout that hold packages."""

CANNOT_RUN, USAGE = 4, 2

EPILOG = f"""\
Missing packages: the first part names those that the lent machine lacks. On a machine that has the network, run
    {wheels.download(wheels.NEEDED)}
with these names alone, carry the folder, and name it by --wheels or KVCONFORM_WHEELS. Each wheel whose package is
missing or older is unpacked into a temporary folder; nothing is installed.

Exit status: 0 all was done and passed; 1 a part failed; 3 no part failed, and some were cut short or left out;
4 nothing can run here; 130 interrupted.
"""


def arguments(words: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        "python -m tools.on_gpu",
        description="Judge and measure the GPU caches within a budget of minutes, the most valuable first.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("minutes", nargs="?", type=float, default=9.0, help="minutes for everything together (9)")
    parser.add_argument(
        "--on", choices=parts.MACHINES, default="gpu", help="emulation: the kernels on the CPU, to try this command"
    )
    parser.add_argument("--only", action="append", default=[], metavar="PART", help="only this part (repeatable)")
    parser.add_argument("--list", action="store_true", help="list the parts in their order, and end")
    parser.add_argument(
        "--wheels",
        type=Path,
        default=os.environ.get("KVCONFORM_WHEELS"),
        metavar="DIR",
        help="folder of wheels of packages that are missing here",
    )
    parser.add_argument(
        "--out", type=Path, default=ROOT / "kvconform-report" / "gpu", metavar="DIR", help="folder of all records"
    )
    parser.add_argument(
        "--pack",
        type=Path,
        default=Path(os.environ["OUT"], "gpu.tar.gz") if os.environ.get("OUT") else None,
        metavar="FILE",
        help="also pack the folder into this file after each part ($OUT/gpu.tar.gz where OUT is set)",
    )
    return parser.parse_args(words)


def chosen(options: argparse.Namespace) -> list[parts.Part]:
    """Give the parts to do, in their order. Ends with status 2 where an unknown one is named."""
    every = parts.parts(options.on, options.out.resolve())
    if unknown := set(options.only) - {part.name for part in every}:
        names = ", ".join(part.name for part in every)
        sys.stderr.write(f"on_gpu: no part {', '.join(sorted(unknown))}; there are {names}\n")
        sys.exit(USAGE)
    return [part for part in every if not options.only or part.name in options.only]


def environment(unpacked: Path) -> dict[str, str]:
    """Give the environment of all parts: the checkout is on the path, then the wheels, then what was there."""
    paths = *(str(ROOT / package) for package in PACKAGES), str(unpacked), os.environ.get("PYTHONPATH", "")
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "PYTHONUNBUFFERED": "1"}


def main(words: Sequence[str]) -> int:
    """Do the parts; give the exit status."""
    options = arguments(words)
    todo = chosen(options)
    if options.list:
        print("\n".join(f"{part.name:16} {part.says}" for part in todo))
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="kvconform-wheels-") as folder, Log(options.out, options.pack) as log:
        try:
            for line in wheels.unpack(options.wheels, Path(folder)):
                log.say(line)
        except OSError as e:
            log.say(f"--wheels: {e}")
            return USAGE
        start = Processes(ROOT, environment(Path(folder)), log.write)
        return Session(todo, options.minutes * 60, start, log, time.monotonic).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
