"""Releases of engines side by side: what the scripts of known deviations, and the harness, say of each.

`python -m tools.versions [ENGINE ...] [--keep DIR]`, in `tests`, makes an environment for each release of
`versions.toml` with uv, in a temporary folder or in DIR, runs the scripts of the engine in it, judges the engine's
caches by quick runs, and writes `reports/published/engines/versions/ENGINE.json`. Environments and records that DIR
already has are used again. `--caches NAME ...` judges these caches anew and keeps all else that was published.
Scripts that are new since are asked of each release. Where an environment cannot be made, the tool fails and writes
nothing.
"""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

from msgspec import Struct, convert
from msgspec.structs import replace

from kvreports import json_file
from kvreports.board.versions import Answer, Release, Seen, Shown, Versions
from kvspec import SPEC_VERSION
from kvspec.tables import table
from tools import versions_judged
from tools.shown import FOLDER, named

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "reports" / "published" / "engines" / "versions"
SECONDS = 600
"""What the scripts of a release may take."""
ASKS = """
import contextlib, io, json, runpy, sys, traceback
for script in sys.argv[1:]:
    out, err, status = io.StringIO(), "", None
    with contextlib.redirect_stdout(out):
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit as e:
            status = int(e.code)
        except Exception:
            err = traceback.format_exc()
    print(json.dumps({"status": status, "out": out.getvalue(), "err": err}), flush=True)
"""
"""What an environment runs: scripts, and a line of JSON for each."""


class Engine(Struct, frozen=True, forbid_unknown_fields=True):
    """A table of `versions.toml`, which says what its fields mean."""

    package: str
    scripts: str
    beside: list[str]
    named: list[str]
    judged: list[str]
    releases: dict[str, date]
    newest: tuple[str, ...] = ()


def engines() -> dict[str, Engine]:
    return convert(table("tools", "versions"), dict[str, Engine])


def scripts(engine: Engine) -> list[Path]:
    """The scripts of an engine: those of its newest release, then those of bugs that were mended."""
    return [p for of in (".", "mended") for p in sorted((FOLDER / engine.scripts / of).glob("*.py"))]


def told(script: Path) -> tuple[str, str]:
    """What a script is about and its sort, from the first line of its text: `mlx-lm: ... A wrong result.`"""
    first = str(ast.get_docstring(ast.parse(script.read_text(encoding="utf-8")))).splitlines()[0]
    parts = re.fullmatch(r"[^:]+: (?P<says>.+)\. (?:An? )?(?P<sort>[^.]+)\.", first)
    if parts is None:
        raise ValueError(f"{script.name}: the first line of its text is not `ENGINE: what happens. SORT.`")
    return parts["says"], parts["sort"].lower()


def install(engine: Engine, version: str, folder: Path) -> Path:
    """Make an environment of a release, and all else as it was a day later. Give its interpreter."""
    python = folder / f"{engine.package}-{version}" / "bin" / "python"
    if not python.exists():
        newest = str(engine.releases[version] + timedelta(days=1))
        subprocess.run(["uv", "venv", "-q", "-p", sys.executable, str(python.parents[1])], check=True)
        words = ["uv", "pip", "install", "-q", "-p", str(python), "--exclude-newer", newest]
        subprocess.run([*words, f"{engine.package}=={version}", *engine.beside], check=True)
    return python


def beside(engine: Engine, python: Path) -> dict[str, str]:
    """The versions of Python and of the packages that are named."""
    code = "import sys, platform; from importlib.metadata import version"
    code += "; print(platform.python_version(), *map(version, sys.argv[1:]))"
    printed = subprocess.run([str(python), "-c", code, *engine.named], check=True, capture_output=True, text=True)
    return dict(zip(("python", *engine.named), printed.stdout.split(), strict=True))


def ask(python: Path, scripts: list[Path], version: str, seconds: float = SECONDS) -> list[Seen]:
    """Run scripts of an engine in an environment, one after another: the import of an engine is dear. They import
    nothing from the folder in which they lie. What the process does not come to is not judged."""
    words = [str(python), "-P", "-c", ASKS, *map(str, scripts)]
    with TemporaryFile("w+") as printed:
        try:
            status = subprocess.run(words, stdout=printed, cwd=python.parent, timeout=seconds).returncode
            end = f"the process ended with {status}"
        except subprocess.TimeoutExpired:
            end = f"more than {seconds:g} s"
        printed.seek(0)
        ran = [json.loads(text) for text in printed if text.startswith("{")]
    seen = [
        Seen(version=version, answer=answer(script, **said), told=line(said["out"], said["err"]))
        for script, said in zip(scripts, ran, strict=False)
    ]
    return seen + [Seen(version=version, answer="not judged", told=end)] * (len(scripts) - len(ran))


def answer(script: Path, status: int | None, out: str, err: str) -> Answer:
    """What a script says. It ends with 0 or 1 by itself behind a line `seen:`; all else is no judgement. A name
    that the script itself does not find in the engine is one that the release lacks."""
    if "\nseen:" in out and status in (0, 1):
        return "not there" if status else "has it"
    missing = re.match(r"(ImportError|ModuleNotFoundError|AttributeError):", line(out, err))
    places = re.findall(r'^  File "(.+)", line \d+', err, re.MULTILINE)
    return "cannot open" if missing and places[-1:] == [str(script)] else "not judged"


def line(out: str, err: str) -> str:
    """What was seen, or the last line of the error, without paths of this machine."""
    seen = re.search(r"^seen: +(.*)", out, re.MULTILINE)
    lines = err.strip().splitlines() or ["nothing was printed"]
    return re.sub(r" \(/[^)]*\)", "", seen[1] if seen else lines[-1])[:200]


def judged(engine_name: str, engine: Engine, folder: Path) -> Versions:
    """The record of an engine: every release asked by every script, and each of its caches judged."""
    pythons = {version: install(engine, version, folder) for version in engine.releases}
    bugs = shown(scripts(engine), pythons)
    releases = [
        Release(version=v, day=str(engine.releases[v]), beside=beside(engine, python))
        for v, python in pythons.items()
    ]
    day = datetime.now(UTC).date().isoformat()
    some = {version: pythons[version] for version in engine.judged}
    caches = versions_judged.judged(names(engine), some, folder)
    return Versions(engine=engine_name, spec=SPEC_VERSION, made=day, releases=releases, bugs=bugs, caches=caches)


def shown(asked: list[Path], pythons: dict[str, Path]) -> list[Shown]:
    """What each release answers to each of these scripts."""
    answers = {version: ask(python, asked, version) for version, python in pythons.items()}
    bugs = []
    for script, *seen in zip(asked, *answers.values(), strict=True):
        says, sort = told(script)
        print(f"{named(script)}: {', '.join(f'{s.version} {s.answer}' for s in seen)}")
        bugs.append(Shown(script=named(script), says=says, sort=sort, seen=seen))
    return bugs


def names(engine: Engine) -> list[str]:
    """The adapters of an engine's caches."""
    return [name for name in versions_judged.of_engine(f"{engine.scripts}-") if name not in engine.newest]


def again(engine: Engine, before: Versions, caches: list[str], folder: Path) -> Versions:
    """The record that was published, with some caches judged anew, and with scripts that are new since."""
    pythons = {version: install(engine, version, folder) for version in engine.judged}
    judged = {cache.name: cache for cache in before.caches}
    judged |= {cache.name: cache for cache in versions_judged.judged(caches, pythons, folder)}
    known = {bug.script: bug for bug in before.bugs}
    if new := [script for script in scripts(engine) if named(script) not in known]:
        every = {version: install(engine, version, folder) for version in engine.releases}
        known |= {bug.script: bug for bug in shown(new, every)}
    return replace(
        before,
        bugs=[known[named(script)] for script in scripts(engine)],
        caches=[judged[name] for name in names(engine) if name in judged],
    )


def main(arguments: list[str], folder: Path) -> None:
    parser = ArgumentParser(prog="tools.versions")
    parser.add_argument("engines", nargs="*", metavar="ENGINE", help=f"{', '.join(engines())}; all without one")
    parser.add_argument("--keep", type=Path, default=folder)
    parser.add_argument(
        "--caches", nargs="+", metavar="NAME", default=[], help="judge these anew, and keep the rest"
    )
    options = parser.parse_args(arguments)
    if shutil.which("uv") is None:
        parser.error("it makes environments with uv: python3 -m pip install uv")
    if unknown := set(options.engines) - engines().keys():
        parser.error(
            f"there is no table of {', '.join(sorted(unknown))} in versions.toml; there are {', '.join(engines())}"
        )
    if lost := {*options.caches} - {cache for engine in engines().values() for cache in names(engine)}:
        parser.error(f"no adapter is called {', '.join(sorted(lost))}")
    for name, engine in engines().items():
        if name in (options.engines or engines()):
            _publish(name, engine, [c for c in options.caches if c in names(engine)], options)


def _publish(name: str, engine: Engine, caches: list[str], options: Namespace) -> None:
    """Write the record of an engine; only some of its caches are judged anew, if some are named."""
    folder, file = options.keep.absolute(), PUBLISHED / f"{name}.json"
    if options.caches and not caches:
        return
    record = (
        again(engine, json_file.load(file, Versions), caches, folder) if caches else judged(name, engine, folder)
    )
    json_file.write(file, json_file.dumps(record))


if __name__ == "__main__":
    with TemporaryDirectory() as place:
        main(sys.argv[1:], Path(place))
