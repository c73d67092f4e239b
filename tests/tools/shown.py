"""The scripts of known deviations: run those whose engine is here, and write what they print where it is told.

`python -m tools.shown [NAME ...]` runs them and writes `shown.md` beside them, and code and output into the drafts.
"""

from __future__ import annotations

import ast
import io
import re
import runpy
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

from kvadapters.probe.checkpoint import Probe

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "reports" / "deviations"
PAGE = FOLDER / "shown.md"


def named(path: Path) -> str:
    """The name of a script or of a draft: where it lies, without its ending."""
    return path.relative_to(FOLDER).with_suffix("").as_posix()


SCRIPTS = {named(p): p for p in sorted(FOLDER.glob("*/**/*.py")) if p.parent.name not in ("models", "mended")}
ENGINES = {
    "mlx": {"mlx", "mlx_lm"},
    "mlxvlm": {"mlx", "mlx_vlm"},
    "transformers": {"transformers", "torch"},
    "llama": {"llama_cpp"},
    "litgpt": {"litgpt", "torch"},
    "executorch": {"executorch", "torch"},
    "torchtune": {"torchtune", "torch"},
    "torch": {"torch"},
    "whisper": {"whisper", "torch"},
    "tvm": {"tvm", "tvm_ffi"},
    "flax": {"flax", "jax"},
    "easydel": {"easydel", "eformer", "ejkernel", "jax"},
    "onnx": {"onnx"},
    "onnxruntime": {"onnxruntime", "onnx"},
    "openvino": {"openvino", "openvino_genai", "optimum"},
    "mistralrs": {"mistralrs"},
    "sglang": {"sglang", "torch"},
    "vllm": {"vllm", "torch"},
    "lmcache": {"lmcache", "torch"},
    "ctranslate2": {"ctranslate2", "torch", "transformers", "tokenizers"},
}
"""What a script may import beside numpy, by its folder: the engine and what brings its arrays."""

SERVED = (
    "llama/serving/server_cache_reuse",
    "llama/serving/server_checkpoint",
    "llama/serving/server_lora",
    "llama/serving/server_shared_buffer",
    "llama/serving/server_swa_full",
    "mlx/serving/server_exact_prompt",
)
"""Scripts that ask a server, which is started by hand."""

HEAD = """\
# What the scripts print

Each [script](README.md) prints the version of its engine, what was expected, and what was seen.
`python -m tools.shown`, in `tests`, runs those whose engine is installed and writes this page and the code in the
drafts beside the scripts. Six ask a server, which is started by hand.
"""


def code(script: str) -> str:
    """The script without the text at its beginning: what is pasted into a report."""
    text = SCRIPTS[script].read_text(encoding="utf-8")
    return "\n".join(text.splitlines()[ast.parse(text).body[0].end_lineno :]).strip() + "\n"


def imported(script: str) -> set[str]:
    """The packages that a script imports and Python does not bring."""
    nodes = [n for n in ast.walk(ast.parse(code(script))) if isinstance(n, (ast.Import, ast.ImportFrom))]
    names = [a.name for n in nodes if isinstance(n, ast.Import) for a in n.names]
    names += [n.module or "." for n in nodes if isinstance(n, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names)


def can_run(script: str) -> bool:
    return script not in SERVED and all(find_spec(package) for package in ENGINES[script.partition("/")[0]])


def run(script: str, folder: Path) -> tuple[int, str]:
    """The status and what is printed; a model that the script asks for is written into `folder`."""
    printed = io.StringIO()
    with redirect_stdout(printed), patch.object(sys, "argv", [script, *_models(script, folder)]):
        try:
            runpy.run_path(str(SCRIPTS[script]), run_name="__main__")
        except SystemExit as e:
            return int(e.code or 0), printed.getvalue()
    raise ValueError(f"{script} ended without a status: end it with sys.exit(...)")


def _models(script: str, folder: Path) -> Iterator[str]:
    """The checkpoint of a probe that the text of a script asks for: with a window, or in a format."""
    text = " ".join(str(ast.get_docstring(ast.parse(SCRIPTS[script].read_text(encoding="utf-8")))).split())
    if asked := re.search(r"Give a gguf(?: with a window of (\d+))?", text):
        output = "weights" if "--format gguf" in text else "tokens"
        probe = Probe.of("gemma3", f"window {asked[1] or 4},full", output)
        probe.write(folder, file_format="gguf")
        yield str(folder / "model.gguf")
    if asked := re.search(
        r'Give the folder of a probe.*kvconform probe (\w+) --layers "([^"]+)" --output tokens', text
    ):
        Probe.of(asked[1], asked[2], "tokens").write(folder)
        yield str(folder)
    if asked := re.search(r"Give the folder of a probe.*kvconform probe (\w+) --layers (\S+) --adapters", text):
        Probe.of(asked[1], asked[2], adapters=True).write(folder)
        yield str(folder)
    if "in OpenVINO's format" in text:
        from kvadapters.serving.drivers.openvino_genai import exported

        Probe.of("qwen3", "full,full", "tokens", adapters="with adapters" in text).write(folder)
        yield str(exported(folder))


def told() -> dict[str, str]:
    """What each script printed, by the page."""
    sections = PAGE.read_text(encoding="utf-8").split("\n## ")[1:] if PAGE.exists() else []
    named = (section.partition("\n\n```text\n") for section in sections)
    return {name: printed.partition("```")[0] for name, _, printed in named}


def page(printed: dict[str, str]) -> str:
    return HEAD + "".join(f"\n## {name}\n\n```text\n{text}```\n" for name, text in sorted(printed.items()))


def with_code(draft: str, script: str, printed: str) -> str:
    """A draft whose first block of Python is the code of the script, and whose first block of text its output."""
    for kind, text in (("python", code(script)), ("text", printed)):
        head, mark, rest = draft.partition(f"```{kind}\n")
        if not mark:
            raise ValueError(f"the draft of {script} has no block ```{kind}: add one where it belongs")
        draft = head + mark + text + rest[rest.index("```") :]
    return draft


def drafts() -> dict[str, Path]:
    """The drafts of reports, by their script."""
    return {named(p): p for p in sorted(FOLDER.glob("*/**/*.md"))}


def main(names: list[str], folder: Path) -> None:
    printed = told()
    for name in (n for n in names or SCRIPTS if can_run(n)):
        status, printed[name] = run(name, folder)
        print(f"{name}: {'shows it' if status == 0 else 'does not show it any more'}")
    PAGE.write_text(page(printed), encoding="utf-8")
    for name, path in drafts().items():
        path.write_text(with_code(path.read_text(encoding="utf-8"), name, printed[name]), encoding="utf-8")


if __name__ == "__main__":
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as place:
        main(sys.argv[1:], Path(place))
