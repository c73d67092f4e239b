"""The parts of a session on a lent GPU, the most valuable first. No part needs another part's result, except those
that print targets beside a profile."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple

TARGETS = Path(__file__).parents[1] / "targets.toml"


class Part(NamedTuple):
    """A process: the words behind `python -m`."""

    name: str
    says: str
    words: tuple[str, ...]
    least: float
    """Seconds without which it is not worth beginning."""
    share: float
    """Share of the time left that it may take."""
    fine: tuple[int, ...] = (0,)
    """The statuses that are no failure."""
    vital: bool = False
    """Whether nothing else can run where this part ends with status 4."""


class Machine(NamedTuple):
    """The adapters of a machine, and the options of their profiles."""

    plain: str
    fast: str
    profile: tuple[str, ...]
    """Of every profile."""
    models: tuple[str, ...]
    """Of the profile of current models."""
    cases: str
    """The cases that targets are about, as a regular expression."""
    limits: str
    """The case beside which the limits are measured."""
    prefill: str
    """The cases of many queries, for which there are two kernels."""
    latent: str
    """The cases of latent rows, which one kernel reads where they lie, and others decode."""


def cases_of(adapter: str) -> str:
    """Give a pattern of the cases that the targets of an adapter are about, and of those that they compare with. A
    target about all cases adds none."""
    rows = [row for row in tomllib.loads(TARGETS.read_text())["target"] if adapter in row["adapters"]]
    return "|".join(dict.fromkeys(["^attention/", *(row["cases"] for row in rows if row["cases"])]))


MACHINES = {
    "gpu": Machine(
        *("cupy", "cupy-fast", (), ("--models",)),
        *(cases_of("cupy-fast"), "^append/llama-3.1-8b/f16/1024$", "^attention/.*/n(512|4096)$", "/latent$"),
    ),
    "emulation": Machine(
        *("cuda-cpu", "cuda-cpu-fast", ("--quick", "--peers", "numpy"), ()),
        *("^(append|attention)/", "^append/gpt-2-small/f16/64$", "^attention/", "^attention/"),
    ),
}
"""The emulation shows that this command works: its profiles are quick, and its numbers say nothing."""


def parts(machine: str, out: Path) -> list[Part]:
    """Give all parts of a machine, in order."""
    on = MACHINES[machine]
    return [*_first(on, out), *_judged(on, out), *_measured(on, out), *_hopper(on, out), *_long(on, out)]


def _first(on: Machine, out: Path) -> list[Part]:
    probe = "tools.on_gpu.probe", on.plain, str(out / "device.json")
    cupy = "pytest", "-q", "-p", "no:cacheprovider", "tests/adapters/runtimes/test_cupy.py"
    found = [Part("device", "what is there: device, driver, packages, the clock", probe, 5, 0.5, vital=True)]
    if on.plain == "cupy":
        lacks = (*cupy, "-k", "nothing_that_cupy_lacks")
        found.append(Part("names", "CuPy has all that is called", lacks, 10, 0.3))
    return found


def _run(adapter: str, folder: Path, *more: str) -> tuple[str, ...]:
    return "kvconform", "run", adapter, "--report", str(folder), *more


def _profile(on: Machine, adapter: str, folder: Path, *more: str) -> tuple[str, ...]:
    return "kvconform", "profile", adapter, *on.profile, "--report", str(folder), *more


def _judged(on: Machine, out: Path) -> list[Part]:
    strict = "kvconform", "strict", on.plain
    return [
        Part("quick", f"{on.plain} conforms, quickly", _run(on.plain, out / "quick", "--quick"), 20, 0.4),
        Part("quick-fast", f"{on.fast} conforms, quickly", _run(on.fast, out / "quick-fast", "--quick"), 20, 0.4),
        Part("strict", f"strict attention of {on.plain}, to the bit", strict, 15, 0.4),
    ]


def _measured(on: Machine, out: Path) -> list[Part]:
    fast, models = out / "fast", out / "models"
    limits = _profile(on, on.plain, out / "limits", "--cases", on.limits)
    few = "--cases", on.cases, "--minutes", "{minutes}"
    usual, current = _profile(on, on.fast, fast, *few), _profile(on, on.fast, models, *on.models, *few)
    return [
        Part("limits", "the limits of the device", limits, 15, 0.4),
        Part("fast", f"the cases of {on.fast} that have targets, beside peers", usual, 30, 0.4),
        _page("targets", fast),
        Part("models", f"{on.fast} on the attention of current models", current, 30, 0.4),
        _page("targets-models", models),
    ]


def _page(name: str, folder: Path) -> Part:
    """Print the targets. To miss one is no failure."""
    words = "tools.targets", str(folder / "profile.json")
    return Part(name, f"the targets, beside what `{folder.name}` measured", words, 2, 0.5, fine=(0, 1))


def _hopper(on: Machine, out: Path) -> list[Part]:
    """The kernels for compute capability 9.0, which no device ran before: do they conform, and are they faster than
    those that `models` measured?"""
    asked, limited = "tools.on_gpu.with_hopper", ("--minutes", "{minutes}")
    quick, judged = out / "quick-hopper", f"{on.fast} with the kernels for 9.0 conforms, quickly"
    many = _profile(on, on.fast, out / "hopper", *on.models, "--cases", on.prefill, *limited)
    latent = _profile(on, on.fast, out / "latent", *on.models, "--cases", on.latent, *limited)
    return [
        Part("quick-hopper", judged, (asked, *_run(on.fast, quick, "--quick")), 20, 0.3),
        Part("hopper", "their cases of many queries, beside peers", (asked, *many), 20, 0.3),
        Part("latent", "their cases of latent rows", (asked, *latent), 20, 0.3),
    ]


def _long(on: Machine, out: Path) -> list[Part]:
    limited = "--minutes", "{minutes}"
    return [
        Part("run", f"{on.plain} conforms, judged whole", _run(on.plain, out / "run"), 60, 0.4),
        Part("run-fast", f"{on.fast} conforms, judged whole", _run(on.fast, out / "run-fast"), 60, 0.4),
        Part("profile", f"all cases of {on.plain}", _profile(on, on.plain, out / "profile", *limited), 60, 0.5),
        Part("profile-fast", f"all cases of {on.fast}", _profile(on, on.fast, out / "all-fast", *limited), 60, 1.0),
    ]
