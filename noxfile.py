"""One session per backend, and one for each habit. `nox -l` lists them."""

from __future__ import annotations

import os
import shutil
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import nox
from nox.command import CommandFailed

nox.options.sessions = ["lint", "types", "tests", "reference", "opencl"]
nox.options.reuse_existing_virtualenvs = True
nox.options.default_venv_backend = "uv|venv"

REPORTS = Path("kvconform-report")
PUBLISHED = {
    "runs": sorted(Path("reports/published").glob("*/record.json")),
    "profile": [Path("reports/published/opencl/profile.json")],
    "mutants": [Path("reports/published/mutants/mutants.json")],
}
"""The published records that are rendered together on a page."""
DEV = [
    "pytest",
    "pytest-xdist",
    "ruff",
    "mypy",
    "jsonschema",
    "types-jsonschema",
    "types-tabulate",
    "types-psutil",
    "hatchling",
]
NVRTC = "nvidia-cuda-nvrtc==13.0.88"
"""One version, so that what compiles today compiles tomorrow."""

TORCH, TORCH_INDEX = "torch==2.13.0+cpu", "https://download.pytorch.org/whl/cpu"
PLAYWRIGHT, AXE = "playwright==1.65.2", "axe-core@4.11.0"
LOOKED_AT = ("", "guide", "ring", "RING-3", "RING-10", "differences", "board", "bugs", "words", "search", "player")
"""What drives the browser, what looks for barriers, and which pages are looked at: one of each sort."""

SOON = ("--retries", "0", "--timeout", "15")
"""The peer torch by its small build for CPUs. Where that is not to be had, the profile says so and goes on."""

SOAKED = (
    *("reference", "opencl", "cuda-cpu", "Linked", "Whole", "HeadMajor", "FromTheTop", "MoreThanRagged"),
    *("Transposed", "FromTheEnd", "PagedRing", "RowLimit", "LazyWrites"),
)
"""What must never be accused: every runtime that needs no GPU, and correct caches that are stored differently."""

BY_FILE = ("-n", "auto", "--dist", "loadfile", "--no-loadscope-reorder")
"""One process takes all tests of a file, so that what they share is made once. In order: xdist would leave files of
few tests to the end, and some of these take longest."""

SPREAD = ("-n", "auto")
"""Each process takes the next test: those of hostile cases share nothing."""

CANNOT_RUN = 4
CHAPTERS = sorted(text.stem for text in Path("spec/kvspec/chapters").glob("*.md"))
VECTORS = ("cover", "examples", "covering", "mutants")
IN_THE_WHEEL = (
    *(f"kvspec/chapters/{n}.{kind}" for n in CHAPTERS for kind in ("md", "toml")),
    "kvspec/chapters/arguments.toml",
    *(f"kvspec/appendices/{n}.md" for n in ("anomalies", "prove")),
    *(
        f"kvspec/schemas/{n}.json"
        for n in ("trace", "record", "profile", "mutants", "vectors", "question", "answer", "describe")
    ),
    *(f"kvspec/refusals/{n}.toml" for n in ("attention", "bucket", "common", "page", "rope")),
    "kvspec/feature_table.toml",
    *(f"kvspec/vectors/{source}-{n}.json" for source in VECTORS for n in CHAPTERS),
    *(f"kvadapters/gpu/kernels/{n}.inc" for n in ("move", "limits", "attend")),
    *(f"kvadapters/gpu/shim/{n}" for n in ("cuda.h", "scheduler.cpp")),
    *(f"kvreports/templates/{n}.html.j2" for n in ("page", "run", "profile", "mutants", "site/clause")),
    "kvconform/commands/smoke.toml",
    "kvconform/mutants/catalogue.toml",
    *(f"kvconform/mutants/real/{n}.toml" for n in ("growing", "ring", "store")),
    "kvconform/mutants/systematic/targets.toml",
    *(
        f"kvconform/mutants/systematic/equivalents/{n}.toml"
        for n in ("reference", "gpu_caches", "gpu_stores", "kernels")
    ),
    "kvconform/vectors/strict_hash.toml",
    "kvconform/templates/adapter/adapter.py.txt",
    "kvconform/templates/vectors/README.md.txt",
)


def _install(session: nox.Session, extras: str = "", *more: str) -> None:
    session.install("-e", f".{extras}", *more)


def _tool(session: nox.Session, name: str, *arguments: str, **more: Any) -> None:
    """Run a tool of `tests/tools`."""
    session.run("python", "-m", f"tools.{name}", *arguments, env={"PYTHONPATH": "tests"}, **more)


@nox.session
def opencl(session: nox.Session) -> None:
    """The main job: the conformance run of the OpenCL adapter, ending in a report."""
    _opencl(session, "opencl")


@nox.session(name="opencl-fast")
def opencl_fast(session: nox.Session) -> None:
    """The conformance run of the OpenCL adapter whose attention is fast and within the bound, not to the bit."""
    _opencl(session, "opencl-fast")


def _opencl(session: nox.Session, name: str) -> None:
    _install(session, "[opencl]")
    session.run("kvconform", "run", name, "--report", str(REPORTS / name), *session.posargs)


@nox.session
def cupy(session: nox.Session) -> None:
    """The main job on an NVIDIA GPU: the cubins, then the conformance run, ending in a report. No GPU: status 4."""
    _install(session, "[cupy,pytest]", NVRTC)
    session.run("python", "-m", "kvadapters.gpu.runtimes.nvrtc")
    session.run(
        "python", "-m", "pytest", "-q", "tests/adapters/runtimes/test_cupy.py", "-k", "nothing_that_cupy_lacks"
    )
    _where_it_can(session, "kvconform", "run", "cupy", "--report", str(REPORTS / "cupy"), *session.posargs)


@nox.session(venv_backend="venv")  # pip alone takes the options of SOON
def profile(session: nox.Session) -> None:
    """How fast the OpenCL adapter is beside its peers, ending in a record and its page. No test."""
    _install(session, "[opencl,onnxruntime]")
    session.install(TORCH, "--extra-index-url", TORCH_INDEX, *SOON, success_codes=[0, 1], silent=True)
    folder = REPORTS / "opencl"
    session.run("kvconform", "profile", "opencl", "--report", str(folder), *session.posargs)
    session.log(f"the record: {folder / 'profile.json'}; the page: {folder / 'profile.html'}")


@nox.session
def casts(session: nox.Session) -> None:
    """All 2**32 f32 values cast by the kernels, against numpy and ml_dtypes; `-- --values N` for the first N."""
    _install(session, "[opencl]")
    _tool(session, "all_casts", *session.posargs)


@nox.session
def cubins(session: nox.Session) -> None:
    """Compile the CUDA kernels for every architecture, which takes NVRTC (about 220 MB) and no GPU."""
    _install(session, "[nvrtc,pytest]", NVRTC)
    session.run("python", "-m", "kvadapters.gpu.runtimes.nvrtc", *session.posargs)
    session.run("python", "-m", "pytest", "-q", "tests/adapters/runtimes/test_nvrtc.py")


KNOWN = "deviations/kvconform.toml"


def _engines(session: nox.Session, *packages: str) -> None:
    """Judge the caches of released engines, each ending in a record; reproduce the known deviations alone; then put
    all records there are on a board. What is known to deviate is no failure.
    """
    _install(session, f"[{','.join(packages)}]")
    words = {package.partition("-")[0] for package in packages}
    names = session.run("python", "-c", "from kvadapters.find import ENGINES; print(*ENGINES)", silent=True)
    for name in (n for n in str(names).split() if n.partition("-")[0] in words):
        report = str(REPORTS / "engines" / name)
        session.run("kvconform", "run", name, "--known", KNOWN, "--report", report, *session.posargs)
    for script in (s for s in sorted(Path("deviations").glob("*_*.py")) if s.stem.partition("_")[0] in words):
        session.run("python", str(script), success_codes=[0, 1])
    records = sorted((REPORTS / "engines").glob("*/record.json"))
    _board(session, records, REPORTS / "engines")


def _board(session: nox.Session, records: list[Path], folder: Path) -> None:
    chapters = os.path.relpath("spec/kvspec/chapters", folder)
    session.run(
        *("kvconform", "board", *map(str, records)),
        *("--known", KNOWN, "--spec", chapters, "--out", str(folder)),
    )


@nox.session
def engines(session: nox.Session) -> None:
    """The conformance runs of the caches of mlx-lm, onnx and onnxruntime, ending in records and a board."""
    _engines(session, "mlx-lm", "onnx", "onnxruntime")


@nox.session(name="engines-transformers")
def engines_transformers(session: nox.Session) -> None:
    """The same for Hugging Face transformers, which takes torch: more than a gigabyte."""
    _engines(session, "transformers")


@nox.session(name="engines-litgpt")
def engines_litgpt(session: nox.Session) -> None:
    """The same for litgpt, on torch."""
    _engines(session, "litgpt")


@nox.session(name="engines-executorch")
def engines_executorch(session: nox.Session) -> None:
    """The same for executorch, on torch."""
    _engines(session, "executorch")


@nox.session(name="engines-torchtune")
def engines_torchtune(session: nox.Session) -> None:
    """The same for torchtune, on torch."""
    _engines(session, "torchtune")


@nox.session(name="engines-flax")
def engines_flax(session: nox.Session) -> None:
    """The same for flax, on jax."""
    _engines(session, "flax")


@nox.session(name="engines-llama")
def engines_llama(session: nox.Session) -> None:
    """The same for llama.cpp, which pip builds: minutes, and a C++ compiler."""
    _engines(session, "llama-cpp")


@nox.session
def board(session: nox.Session) -> None:
    """Write the published board again from the published records; its page goes to the other reports."""
    _install(session)
    folder = Path("reports/published/engines")
    _board(session, sorted(folder.glob("*/record.json")), folder)
    REPORTS.mkdir(exist_ok=True)
    (folder / "board.html").replace(REPORTS / "board.html")


def _where_it_can(session: nox.Session, *command: str) -> None:
    """Run it. Where it cannot run, nox ends at once with that status: of itself it knows failed and not failed."""
    try:
        session.run(*command)
    except CommandFailed as e:
        if str(e) == f"Returned code {CANNOT_RUN}":
            sys.exit(CANNOT_RUN)
        raise


@nox.session
def demo(session: nox.Session) -> None:
    """A ring with one bug, judged in seconds; draws the picture of the README anew."""
    _install(session)
    session.run("kvconform", "demo", "--no-open", "--report", str(REPORTS / "demo"))
    _tool(session, "demo_picture", str(REPORTS / "demo" / "record.json"))


@nox.session
def reference(session: nox.Session) -> None:
    """The conformance run of the reference."""
    _install(session)
    session.run("kvconform", "run", "reference", "--report", str(REPORTS / "reference"), *session.posargs)


@nox.session(name="cuda-cpu")
def cuda_cpu(session: nox.Session) -> None:
    """The conformance run of the CUDA kernels on the CPU, ending in a report. Needs g++."""
    _install(session)
    session.run("kvconform", "run", "cuda-cpu", "--report", str(REPORTS / "cuda-cpu"), *session.posargs)


def _sanitized(session: nox.Session, tool: str, extras: str = "") -> None:
    """The kernels as they are, in which nothing may be found; with bugs that must be, unless `--every` is given."""
    _install(session, extras)
    for more in (session.posargs, *([] if session.posargs else [("--planted",)])):
        _tool(session, "sanitizers", tool, *more)


@nox.session
def asan(session: nox.Session) -> None:
    """The CUDA kernels on the CPU under AddressSanitizer. Needs g++."""
    _sanitized(session, "asan")


@nox.session
def tsan(session: nox.Session) -> None:
    """The CUDA kernels on the CPU under ThreadSanitizer. Needs g++."""
    _sanitized(session, "tsan")


@nox.session
def oclgrind(session: nox.Session) -> None:
    """The OpenCL kernels under Oclgrind."""
    _sanitized(session, "oclgrind", "[opencl]")


@nox.session
def mutants(session: nox.Session) -> None:
    """Every planted bug and systematic fault, each of which must be found; ends with the matrix. Needs g++."""
    _install(session)
    session.run("kvconform", "mutants", "--report", str(REPORTS / "mutants"), *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """The project's own tests: the harness, its fakes, the reports, the floors, the GPU caches."""
    _install(session, "[opencl,dask,site]", *DEV)
    session.run("python", "-m", "pytest", *BY_FILE, *session.posargs)


@nox.session
def slow(session: nox.Session) -> None:
    """The tests that repeat many times what `tests` does in part. `-- PATHS` for some of them."""
    _install(session, "[opencl,dask,site]", *DEV)
    session.run("python", "-m", "pytest", *BY_FILE, "-m", "slow", *session.posargs)


@nox.session
def hostile(session: nox.Session) -> None:
    """Adapters, processes, environments, signals and files that mean harm; ends with the table of all cases.
    `-- PATHS` for some of them.
    """
    _install(session, "", *DEV)
    cases = ("-m", "hostile or not hostile", "--table", *(session.posargs or ["tests/hostile"]))
    session.run("python", "-m", "pytest", *SPREAD, *cases)


@nox.session
def lint(session: nox.Session) -> None:
    """Ruff, both ways."""
    session.install("ruff")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Mypy, strict."""
    _install(session, "[site]", *DEV)
    session.run("mypy")
    session.run("mypy", "bench")


@nox.session
def prove(session: nox.Session) -> None:
    """The reference proved equal to the list model in the small: every chapter, or `-- --chapter ring` for one."""
    _install(session)
    session.run("kvconform", "prove", "reference", *(session.posargs or ("--chapter", "all", "--window", "3")))


@nox.session
def nightly(session: nox.Session) -> None:
    """Correct adapters are never accused: a million operations drawn on each runtime and each correct variant."""
    _install(session, "[opencl]")
    session.run("kvconform", "soak", *SOAKED, *session.posargs)


@nox.session
def vectors(session: nox.Session) -> None:
    """Compute all that is frozen again and compare; `-- --write` writes what changed, for review. Then export the
    vectors, verify them, and replay them with the plain reader."""
    _install(session)
    _tool(session, "freeze_vectors", *session.posargs)
    folder = str((REPORTS / "vectors").resolve())
    session.run("kvconform", "vectors", "export", "--out", folder)
    session.run("kvconform", "vectors", "verify", folder)
    session.run("python", "examples/vectors/reference.py", folder)


@nox.session
def languages(session: nox.Session) -> None:
    """The example engines in C, Rust, JavaScript and Python, each judged whole where its compiler is there."""
    _install(session)
    session.install("-e", "examples/engines/python", "--no-deps")
    engines, folder = Path("examples/engines").resolve(), Path(session.create_tmp())
    for tool, *build, start in (
        ("cc", "-std=c11", "-O2", "-o", str(folder / "c"), str(engines / "c/engine.c"), str(folder / "c")),
        ("rustc", "-O", "-o", str(folder / "rust"), str(engines / "rust/engine.rs"), str(folder / "rust")),
        ("node", str(engines / "javascript/engine.js")),
    ):
        if shutil.which(tool) is None:
            session.log(f"{tool} is not installed: {start} is left out")
            continue
        if build:
            session.run(tool, *build, external=True)
        session.run("kvconform", "run", *session.posargs, "--", *([start] if build else [tool, start]))
    session.run("kvconform", "run", "example-python", *session.posargs)


@nox.session
def reports(session: nox.Session) -> None:
    """Render the published records and look at the pages in a real browser."""
    _install(session)
    pages = []
    for name, records in PUBLISHED.items():
        pages.append(str(REPORTS / "published" / f"{name}.html"))
        session.run("kvconform", "report", *map(str, records), "--html", pages[-1])
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
    _install(session, "[site]")
    folder, records = REPORTS / "site", sorted(Path("reports/published").glob("**/record.json"))
    session.run(
        *("kvconform", "site", *map(str, records), "--known", KNOWN),
        *("--repository", ".", "--out", str(folder)),
    )
    _tool(session, "site_links", str(folder))
    return folder


def _look(session: nox.Session, *pages: str) -> None:
    """Look at pages, with axe-core where npm can be had. Where there is no browser, say so."""
    session.install(PLAYWRIGHT)
    axe = _axe(session)
    found = ("--axe", str(axe)) if axe else ()
    _tool(session, "check_in_browser", *pages, "--out", str(REPORTS / "screens"), *found, success_codes=[0, 4])


def _axe(session: nox.Session) -> Path | None:
    """The one file of axe-core, which is not ours to keep: MPL-2.0, half a megabyte."""
    folder = Path(session.create_tmp())
    if shutil.which("npm") is None:
        session.log("npm is not installed: axe-core is left out")
        return None
    to = ("--pack-destination", str(folder))
    session.run("npm", "pack", AXE, *to, external=True, silent=True, success_codes=range(256))
    packages = sorted(folder.glob("axe-core-*.tgz"))
    if not packages:
        session.log("npm does not reach its registry: axe-core is left out")
        return None
    with tarfile.open(packages[-1]) as packed:
        packed.extract("package/axe.min.js", folder)
    return folder / "package/axe.min.js"


@nox.session
def release(session: nox.Session) -> None:
    """Compare the published records with the chapters: every run is of these, and passes every clause."""
    _install(session)
    _tool(session, "release_check", *session.posargs)


@nox.session
def build(session: nox.Session) -> None:
    """Build the wheel, look into it, and use it with the checkout out of sight."""
    session.install("build")
    folder = Path(session.create_tmp())
    session.run("python", "-m", "build", "--wheel", "--outdir", str(folder), silent=True)
    wheel = max(folder.glob("*.whl"), key=lambda p: p.stat().st_mtime)
    missing = set(IN_THE_WHEEL) - set(zipfile.ZipFile(wheel).namelist())
    if missing:
        session.error(f"{wheel.name} lacks {', '.join(sorted(missing))}")
    session.install(str(wheel))
    session.chdir(str(folder))
    session.run("kvconform", "run", "reference", "--chapter", "growing", "--traces", "5")


@nox.session
def bench(session: nox.Session) -> None:
    """Speed and memory, as ratios in one run; never a test."""
    _install(session, "[opencl]")
    for script in sorted(Path("bench").glob("bench_*.py")):
        session.run("python", str(script))


if __name__ == "__main__":
    sys.exit("run me with: python3 -m nox")
