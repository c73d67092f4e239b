"""The traces as a package for npm and as a crate, for engines whose tests are in JavaScript or Rust."""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib import resources
from pathlib import Path

from kvconform.vectors import files
from kvconform.vectors.languages.numbered_traces import Step, Told, Trace, told, write
from kvconform.version import __version__
from kvspec.own_folder import demand_own


def npm(chapters: Iterable[str] = ()) -> dict[str, str]:
    """Give the files of a package for npm by name: the traces are JSON. Raises BadInput."""
    found = told(chapters)
    return _filled("npm", ["package.json", "index.js"], found) | {"traces.json": _traces_json(found.traces)}


def crate(chapters: Iterable[str] = ()) -> dict[str, str]:
    """Give the files of a crate by name: the traces are constants. Raises BadInput."""
    found = told(chapters)
    return _filled("crate", ["Cargo.toml", "src/lib.rs"], found) | {"src/traces.rs": _traces_rs(found.traces)}


def write_package(folder: Path, texts: dict[str, str]) -> str:
    """Write the files of a package; give in words what was written. Raises BadInput, also where there is another
    package."""
    demand_own(folder, texts, next(name for name in texts if Path(name).stem == "traces"))
    for name, text in texts.items():
        write(folder / name, text)
    return f"{folder}: {', '.join(sorted(texts))}"


def _filled(language: str, names: list[str], found: Told) -> dict[str, str]:
    """The files that are not data: the version and what is in the package stand in them."""
    texts = {"LICENSE": files.FROZEN.joinpath("LICENSE").read_text(encoding="utf-8")}
    for name in names:
        text = resources.files(__package__).joinpath(language, Path(name).name).read_text(encoding="utf-8")
        texts[name] = text.replace("@SAID@", found.said).replace("@VERSION@", __version__)
    return texts


def _traces_json(traces: list[Trace]) -> str:
    """A list with one trace a line."""
    told = [t._asdict() | {"steps": [_json_step(step) for step in t.steps]} for t in traces]
    return "[\n" + ",\n".join(json.dumps(t, separators=(",", ":")) for t in told) + "\n]\n"


def _json_step(step: Step) -> dict[str, object]:
    """A step with what its operation takes alone."""
    left_out = {"append": {"to"}, "rewind": {"rows"}, "reset": {"to", "rows"}}[step.op]
    return {name: value for name, value in step._asdict().items() if name not in left_out}


def _traces_rs(traces: list[Trace]) -> str:
    """A table of constants with one trace a line."""
    lines = ",\n    ".join(map(_rs_trace, traces))
    return f"use crate::{{Op::*, Step, Trace}};\n\npub(crate) static TRACES: &[Trace] = &[\n    {lines},\n];\n"


def _rs_trace(trace: Trace) -> str:
    window = f"Some({trace.window})" if trace.window else "None"
    steps = ", ".join(map(_rs_step, trace.steps))
    return f"Trace {{ words: {json.dumps(trace.words)}, window: {window}, steps: &[{steps}] }}"


def _rs_step(step: Step) -> str:
    op = {"append": f"Append(&{step.rows})", "rewind": f"Rewind({step.to})", "reset": "Reset"}[step.op]
    sees = ", ".join(f"&{rows}" for rows in step.sees)
    refused = str(step.refused).lower()
    return f"Step {{ op: {op}, refused: {refused}, offset: {step.offset}, sees: &[{sees}] }}"
