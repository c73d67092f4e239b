"""One session per backend, and one for each habit. `nox -l` lists them."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tomllib
import zipfile
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import nox
from nox.command import CommandFailed

nox.options.sessions = ["lint", "types", "tests", "reference", "opencl"]
nox.options.reuse_existing_virtualenvs = True
nox.options.default_venv_backend = "uv|venv"
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # or each process that is started compiles all modules again

REPORTS = Path("kvconform-report")
PUBLISHED = {
    "runs": [
        Path("reports/published", name, "record.json") for name in ("reference", "opencl", "opencl-fast", "cupy")
    ],
    "profile": [Path("reports/published/opencl/profile.json")],
    "mutants": [Path("reports/published/mutants/mutants.json")],
}
"""The published records that are rendered together on a page."""

KNOWN = "reports/deviations/kvconform.toml"
NVRTC = "nvidia-cuda-nvrtc==13.0.88"
"""One version, so that what compiles today compiles tomorrow."""

TORCH, TORCH_INDEX = "torch==2.13.0+cpu", "https://download.pytorch.org/whl/cpu"
SOON = ("--retries", "0", "--timeout", "15")
"""The peer torch as its small build for CPUs. Where it cannot be had, the profile says so and goes on."""
FOR_CPUS = ("--extra-index-url", TORCH_INDEX, *SOON)
"""For packages that need this build."""

GPU_PEERS = ("torch==2.13.0", "triton==3.7.1", "jax==0.10.2")
"""Packages of peers on a GPU that are tried without one."""

PLAYWRIGHT, AXE = "playwright==1.65.2", "axe-core@4.11.0"
LOOKED_AT = (
    "",
    "guide",
    "ring",
    "RING-3",
    "RING-10",
    "differences",
    "board",
    "versions",
    "bugs",
    "words",
    "search",
    "player",
)
"""What drives the browser, what looks for barriers, and which pages are looked at: one of each sort."""

CANNOT_RUN = 4
ENGINE_LIMITS = ("--deadline", "60", "--memory", "8192")
"""What an operation of a released engine may take: one in Python weighs 8,000 rows against each other in one.
Another loads a model for each width, of 4,098 elements too."""
TOOLS = {"PYTHONPATH": "tests"}

DATA = tomllib.loads(Path("tests/sessions.toml").read_text(encoding="utf-8"))
"""The sessions that are data, and how the example engines are built."""


def _install(session: nox.Session, *extras: str, more: tuple[str, ...] = ()) -> None:
    session.install("-e", f".[{','.join(extras)}]" if extras else ".", *more)


def _tool(session: nox.Session, name: str, *arguments: str, **more: Any) -> None:
    """Run a tool of `tests/tools`."""
    session.run("python", "-m", f"tools.{name}", *arguments, env=TOOLS, **more)


def _sessions(table: str, body: Callable[[nox.Session, str, dict[str, Any]], None]) -> None:
    """Make a session of each row of a table of `sessions.toml`: it installs the extras, removes what does not
    fit, then runs the body. What needs the torch for CPUs is installed by pip, which goes on without its index."""
    for name, row in DATA[table].items():

        def session(session: nox.Session, name: str = name, row: dict[str, Any] = row) -> None:
            more = FOR_CPUS if row.get("cpu") else ()
            _install(session, *row.get("extras", ()), more=more)
            for arguments in row.get("install", ()):
                session.install(*shlex.split(arguments), *more)
            if without := row.get("without"):
                session.run("python", "-m", "pip", "uninstall", "-q", "-y", *without)
            body(session, name, row)

        session.__doc__ = row["says"].strip()
        nox.session(session, name=name, venv_backend="venv" if row.get("cpu") else None)


def _commands(session: nox.Session, _: str, row: dict[str, Any]) -> None:
    posargs = session.posargs or row.get("usually", [])
    for command in row["run"]:
        words = [posargs if word == "{posargs}" else [word] for word in shlex.split(command)]
        session.run(*chain(*words), env=TOOLS if "tools." in command else None)


_sessions("commands", _commands)


@nox.session
def cupy(session: nox.Session) -> None:
    """The main job on an NVIDIA GPU: the cubins, then the conformance run, ending in a report. No GPU: status 4."""
    _on_a_gpu(session)


@nox.session(venv_backend="venv")  # pip alone takes the options of SOON
def gpu(session: nox.Session) -> None:
    """All that takes an NVIDIA GPU: `cupy`, then the strict hash, profiles beside torch, and the targets."""
    _on_a_gpu(session)
    session.run("kvconform", "strict", "cupy")
    for package in ("torch", "jax[cuda13]", "flashinfer-python"):  # Triton comes with torch
        session.install(package, *SOON, success_codes=[0, 1], silent=True)
    profiles = {"cupy": ("cupy",), "cupy-fast": ("cupy-fast",), "models": ("cupy-fast", "--models")}
    for folder, words in profiles.items():
        session.run("kvconform", "profile", *words, "--report", str(REPORTS / folder))
    records = [str(Path.cwd() / REPORTS / folder / "profile.json") for folder in profiles]
    _tool(session, "targets", *records, success_codes=[0, 1])  # a target that is missed fails nothing


def _on_a_gpu(session: nox.Session) -> None:
    _install(session, "cupy", "pytest", more=(NVRTC,))
    session.run("python", "-m", "kvgpu.runtimes.nvidia.nvrtc")
    session.run(
        "python", "-m", "pytest", "-q", "tests/adapters/runtimes/test_cupy.py", "-k", "nothing_that_cupy_lacks"
    )
    for name in ("cupy", "cupy-fast"):
        _where_it_can(session, "kvconform", "run", name, "--report", str(REPORTS / name), *session.posargs)


def _where_it_can(session: nox.Session, *command: str) -> None:
    """Run it. Where it cannot run, end with that status: nox itself knows only failed and not failed."""
    try:
        session.run(*command)
    except CommandFailed as e:
        if str(e) == f"Returned code {CANNOT_RUN}":
            sys.exit(CANNOT_RUN)
        raise


@nox.session(venv_backend="venv")  # pip alone takes the options of SOON
def profile(session: nox.Session) -> None:
    """How fast the OpenCL adapter is beside its peers, ending in a record and its page. No test."""
    _install(session, "opencl", "onnxruntime", "openvino")
    session.install(TORCH, *FOR_CPUS, success_codes=[0, 1], silent=True)
    folder = REPORTS / "opencl"
    session.run("kvconform", "profile", "opencl", "--report", str(folder), *session.posargs)
    session.log(f"the record: {folder / 'profile.json'}; the page: {folder / 'profile.html'}")


@nox.session
def peers(session: nox.Session) -> None:
    """The peers that compute on a GPU, as far as they go without one: forms, layouts, JAX, Triton's kernels."""
    _install(session, "onnxruntime", "openvino", "pytest", more=GPU_PEERS)
    tests = ("python", "-m", "pytest", "-q", *(session.posargs or ["tests/conformance/profiling"]))
    session.run(*tests)
    session.run(*tests, "-k", "triton", env={"TRITON_INTERPRET": "1"}, success_codes=[0, 5])


@nox.session
def cubins(session: nox.Session) -> None:
    """Compile the CUDA kernels for every architecture, or for those named. It takes NVRTC (220 MB) and no GPU."""
    _install(session, "nvrtc", "pytest", more=(NVRTC,))
    session.run("python", "-m", "kvgpu.runtimes.nvidia.nvrtc", *session.posargs)
    named = ["-k", " or ".join(("not sm_", *session.posargs))] if session.posargs else []
    tests = ("test_nvrtc.py", "test_tensor_map.py")
    session.run("python", "-m", "pytest", "-q", *(f"tests/adapters/runtimes/{name}" for name in tests), *named)


def _engines(session: nox.Session, _: str, row: dict[str, Any]) -> None:
    """Judge the caches of released engines, each ending in a record. Reproduce the known deviations alone. Then put
    all records there are on a board. What is known to deviate is no failure.
    """
    words = {package.partition("-")[0] for package in row.get("of", row.get("extras", ()))}
    names = session.run("python", "-c", "from kvadapters.find import ENGINES; print(*ENGINES)", silent=True)
    for name in (n for n in str(names).split() if n.partition("-")[0] in words):
        report = str(REPORTS / "engines" / name)
        judged = ("kvconform", "run", name, "--known", KNOWN, "--report", report)
        session.run(*judged, *ENGINE_LIMITS, *session.posargs)
    _tool(session, "shown")
    _board(session, sorted((REPORTS / "engines").glob("*/record.json")), REPORTS / "engines")


_sessions("engines", _engines)


def _whole_engine(session: nox.Session, name: str, row: dict[str, Any]) -> None:
    if npm := row.get("npm"):
        session.env["KVCONFORM_NODE"] = folder = session.create_tmp()
        session.run("npm", "install", "--prefix", folder, "--ignore-scripts", *npm, external=True)
    _tool(session, "serving_engines", name, *session.posargs, success_codes=[0, 1, 3])
    if "tests" in row and not session.posargs:
        session.run("python", "-m", "pytest", "-q", *shlex.split(row["tests"]))


_sessions("serving", _whole_engine)


def _board(session: nox.Session, records: list[Path], folder: Path) -> None:
    chapters = os.path.relpath("spec/kvspec/chapters", folder)
    session.run(
        *("kvconform", "board", *map(str, records)),
        *("--known", KNOWN, "--spec", chapters, "--out", str(folder)),
    )


@nox.session
def board(session: nox.Session) -> None:
    """Write the published board again from the published records; its page goes to the other reports."""
    _install(session)
    folder = Path("reports/published/engines")
    records = [*folder.glob("*/record.json"), *folder.parent.glob("serving/*/record.json")]
    records += [*folder.glob("versions/*.json"), *folder.glob("asked/*.json")]
    _board(session, sorted(records), folder)
    REPORTS.mkdir(exist_ok=True)
    (folder / "board.html").replace(REPORTS / "board.html")


def _sanitized(session: nox.Session, tool: str, _: dict[str, Any]) -> None:
    """The kernels, where nothing may be found; then, unless `--every` is given, planted bugs that must be."""
    for more in (session.posargs, *([] if session.posargs else [("--planted",)])):
        _tool(session, "sanitizers", tool, *more)


_sessions("sanitizers", _sanitized)


@nox.session
def lint(session: nox.Session) -> None:
    """Ruff, both ways."""
    session.install("ruff")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def vectors(session: nox.Session) -> None:
    """Compute all that is frozen again and compare; `-- --write` writes what changed, for review. Then export the
    vectors, verify them, and replay them with the plain reader."""
    _install(session)
    _tool(session, "freeze_vectors", *session.posargs)
    folder = str((REPORTS / "vectors").resolve())
    session.run("kvconform", "vectors", "export", "--out", folder)
    session.run("kvconform", "vectors", "verify", folder)
    session.run("python", "docs/examples/vectors/reference.py", folder)


@nox.session
def languages(session: nox.Session) -> None:
    """The example engines in C, Rust, JavaScript and Python, each judged whole where its compiler is there."""
    _install(session)
    session.install("-e", "docs/examples/engines/python", "--no-deps")
    places = {"engines": Path("docs/examples/engines").resolve(), "out": session.create_tmp()}
    for tool, language in DATA["languages"].items():
        build, start = (language.get(key, "").format(**places).split() for key in ("build", "start"))
        if shutil.which(tool) is None:
            session.log(f"{tool} is not installed: {' '.join(start)} is left out")
            continue
        if build:
            session.run(*build, external=True)
        session.run("kvconform", "run", *session.posargs, "--", *start)
    session.run("kvconform", "run", "example-python", *session.posargs)


@nox.session
def reports(session: nox.Session) -> None:
    """Render the published records and the demo, which fails, and look at the pages in a real browser;
    `-- NAME...` for some of them."""
    _install(session)
    pages, names = [], (*PUBLISHED, "demo")
    if unknown := set(session.posargs) - set(names):
        session.error(f"no page of {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    for name in session.posargs or names:
        page = REPORTS / "demo" / "report.html" if name == "demo" else REPORTS / "published" / f"{name}.html"
        if name == "demo":
            session.run("kvconform", "demo", "--no-open", "--report", str(page.parent))
        else:
            session.run("kvconform", "report", *map(str, PUBLISHED[name]), "--html", str(page))
        pages.append(str(page))
    _look(session, *pages)


@nox.session
def site(session: nox.Session) -> None:
    """Build the spec as a site, a page for each clause, with the published records, and follow every link."""
    _site(session)


@nox.session
def browser(session: nox.Session) -> None:
    """Build the site and look at its pages in a real browser; `-- NAME...` for some of them, such as RING-19."""
    pages = session.posargs or LOOKED_AT
    folder = _site(session)
    _look(session, *(str(folder / name / "index.html") for name in pages))
    session.install("pytest")
    session.run("python", "-m", "pytest", "-q", "tests/reports/test_in_browser.py")


def _site(session: nox.Session) -> Path:
    _install(session, "site")
    folder, published = REPORTS / "site", Path("reports/published")
    records = sorted([*published.glob("**/record.json"), *published.glob("engines/versions/*.json")])
    session.run(
        *("kvconform", "site", *map(str, records), "--known", KNOWN),
        *("--repository", ".", "--out", str(folder)),
    )
    _tool(session, "site_links", str(folder))
    return folder


def _look(session: nox.Session, *pages: str) -> None:
    """Look at pages, with axe-core where npm can be had. Where there is no browser, say so."""
    session.install(PLAYWRIGHT)
    axe = Path(session.create_tmp()) / "axe.min.js"
    _tool(session, "fetch_axe", AXE, str(axe))
    found = ("--axe", str(axe)) if axe.exists() else ()
    _tool(session, "check_in_browser", *pages, "--out", str(REPORTS / "screens"), *found, success_codes=[0, 4])


@nox.session
def build(session: nox.Session) -> None:
    """Build the wheel, look into it, and use it with the checkout out of sight."""
    session.install("build")
    folder = Path(session.create_tmp())
    session.run("python", "-m", "build", "--wheel", "--outdir", str(folder), silent=True)
    wheel = max(folder.glob("*.whl"), key=lambda p: p.stat().st_mtime)
    missing = _in_the_packages(session) - set(zipfile.ZipFile(wheel).namelist())
    if missing:
        session.error(f"{wheel.name} lacks {', '.join(sorted(missing))}")
    session.install(str(wheel))
    session.chdir(str(folder))
    session.run("kvconform", "run", "reference", "--chapter", "growing", "--traces", "5")


def _in_the_packages(session: nox.Session) -> set[str]:
    """Every file of the packages that git tracks, named as in the wheel."""
    packages = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    folders = packages["targets"]["wheel"]["packages"]
    tracked = str(session.run("git", "ls-files", *folders, external=True, silent=True))
    return {name.partition("/")[2] for name in tracked.splitlines()}


@nox.session
def bench(session: nox.Session) -> None:
    """Speed and memory, as ratios in one run; never a test."""
    _install(session, "opencl")
    for script in sorted(Path("tests/bench").glob("bench_*.py")):
        session.run("python", str(script))


if __name__ == "__main__":
    sys.exit("run me with: python3 -m nox")
