"""`kvconform run --watch`: judges again whenever a file of the adapter has changed."""

from __future__ import annotations

import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from importlib.machinery import PathFinder
from pathlib import Path

from kvadapters import find
from kvconform.message import tell
from kvspec.errors import BadInput, CannotRun

POLL = 0.3
"""Seconds between two looks at the files."""

MOST_FILES = 20_000
"""Files that are looked at: more are no adapter, but a home folder."""

SOURCES = frozenset(
    {".py", ".pyx", ".toml", ".c", ".h", ".cc", ".hh", ".cpp", ".hpp", ".cu", ".cuh", ".cl", ".m", ".mm", ".metal"}
    | {".rs", ".go", ".zig", ".js", ".mjs", ".ts", ".java", ".swift", ".so", ".dylib", ".wasm"}
)
"""The endings of files that may be part of an adapter."""

SKIPPED = frozenset({"__pycache__", "node_modules", "venv", "site-packages"})
"""Folders of which nothing is looked at, beside those whose names begin with a dot."""

Seen = dict[Path, tuple[int, int]]
"""Each file, with when it was written (nanoseconds) and its size (bytes)."""


def main(options: Namespace, judge: Callable[[Namespace], int]) -> int:
    """Judge, wait for a change, and judge again, until Ctrl-C. Gives the status of the last run; 130 if Ctrl-C came
    while it judged. Raises BadInput if there are no files to watch, or far too many."""
    places, left_out = watched(options), Path(options.report).resolve() if options.report else None
    seen = files(places, left_out)
    while True:
        status = _judged(options, judge)
        if status == 130:
            return status
        try:
            seen, changed = _change(seen, lambda: files(places, left_out), options.quiet)
        except KeyboardInterrupt:
            return status
        if not options.quiet:
            tell(f"judging again: {_named(changed)}")


def _judged(options: Namespace, judge: Callable[[Namespace], int]) -> int:
    """Judge once. What cannot start, such as a file that is half written, is told: the next change may mend it."""
    try:
        return judge(options)
    except BadInput as e:
        tell(str(e))
        return 2
    except CannotRun as e:
        tell(f"it cannot run here: {e}")
        return 4
    finally:
        sys.stdout.flush()  # whoever reads it waits for nothing else


def watched(options: Namespace) -> list[Path]:
    """Give the working folder, the package or file of the adapter's module if it stands elsewhere, and the files
    that its command names. Nothing is imported."""
    places = [Path().resolve()]
    known = None if options.process else find.BUILT_IN.get(options.adapter) or find.names().get(options.adapter)
    module = (known or options.adapter or "").partition(":")[0].partition(".")[0]
    spec = PathFinder.find_spec(module, [*sys.path, str(places[0])]) if module else None
    if spec is not None:
        found = spec.submodule_search_locations or [spec.origin or ""]
        places += [Path(p).resolve() for p in found if os.path.exists(p)]
    places += [Path(word).resolve() for word in options.process if Path(word).is_file()]
    return [p for p in dict.fromkeys(places) if p == places[0] or p.is_file() or not p.is_relative_to(places[0])]


def files(places: Iterable[Path], left_out: Path | None = None) -> Seen:
    """Look at these files, and at the sources in these folders. Raises BadInput for none, and for too many."""
    seen: Seen = {}
    for place in places:
        for path in [place] if place.is_file() else _sources(place, left_out):
            try:
                about = path.stat()
            except OSError:  # it was taken away just now
                continue
            seen[path] = (about.st_mtime_ns, about.st_size)
            if len(seen) > MOST_FILES:
                raise BadInput(f"--watch: more than {MOST_FILES:,} files; run in the folder of the adapter")
    if not seen:
        raise BadInput(
            f"--watch: no source files in {', '.join(map(str, places))}; run in the folder of the adapter"
        )
    return seen


def _sources(folder: Path, left_out: Path | None) -> Iterator[Path]:
    for where, inner, names in os.walk(folder):
        inner[:] = [n for n in inner if n[0] != "." and n not in SKIPPED and Path(where, n) != left_out]
        yield from (Path(where, name) for name in names if os.path.splitext(name)[1] in SOURCES)


def _change(before: Seen, look: Callable[[], Seen], quiet: bool) -> tuple[Seen, list[Path]]:
    """Wait until files differ from what they were before the run, and have stopped changing: an editor writes
    several, one after the other. Gives them as they are now, and which changed."""
    if not quiet:
        tell(f"watching {len(before):,} file{'s' * (len(before) != 1)}; Ctrl-C ends")
    last, now = before, look()
    while now == before or now != last:
        time.sleep(POLL)
        last, now = now, look()
    return now, sorted(p for p in before.keys() | now.keys() if before.get(p) != now.get(p))


def _named(changed: list[Path]) -> str:
    more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
    return f"{', '.join(path.name for path in changed[:3])}{more} changed"
