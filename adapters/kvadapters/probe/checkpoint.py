"""Probes: chosen here, written as a checkpoint, and found again by the folder that they were written to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from kvadapters.probe import architectures, linear_weights, lora, weights
from kvadapters.probe.architecture import FEED_FORWARD, Architecture
from kvadapters.probe.formats import lora as lora_files
from kvadapters.probe.formats.writers import DTYPES, LEFT, WRITERS, leave
from kvadapters.probe.layout import HEAD_DIM, Layout
from kvadapters.probe.network import Network
from kvadapters.probe.views import parsed
from kvspec.errors import BadInput
from kvspec.outside import read_bytes, read_json
from kvspec.own_folder import demand_own

RECIPE = 1
"""Changes when the same words give other weights."""
LARGEST = 100_000_000
"""Bytes of a checkpoint in f32."""
OUTPUTS = ("weights", "tokens")
"""What the output is for: to read weights off logits, or to judge an engine that returns tokens alone."""
LONGEST = 2048
"""Tokens of a text: the network weighs each against each, in every head."""


@dataclass(frozen=True)
class Probe:
    """A network whose logits say what each query saw; see `kvadapters.probe`."""

    architecture: Architecture
    layout: Layout
    output: str = "weights"
    adapters: bool = False
    """Whether it has the adapters of `lora.ADAPTERS`."""
    adapter: str = ""
    """The adapter with which the network computes; empty: none."""

    @classmethod
    def of(
        cls,
        architecture: str,
        layers: str,
        output: str = "weights",
        adapters: bool = False,
        match: bool = False,
    ) -> Probe:
        """Choose a probe: `Probe.of("gemma3", "full,window 8")`. With `match` it has heads that match keys. Raises
        BadInput."""
        if output not in OUTPUTS:
            raise BadInput(f"no output {output!r}; there are {', '.join(OUTPUTS)}")
        found = architectures.named(architecture)
        views = found.checked(parsed(layers))
        if adapters:
            lora.checked(found, views)
        ballast = weights.BALLAST if found.out_norm else 1.0
        for kv_heads in (4, 2, 1):
            layout = Layout(views, kv_heads, ballast, found.free_head_dim, match)
            if 4 * _elements(found, layout) <= LARGEST:
                return cls(found, layout, output, adapters)
        raise BadInput(f"{len(views)} layers make a checkpoint of more than {LARGEST // 10**6} MB; take fewer")

    @classmethod
    def load(cls, folder: str | Path) -> Probe:
        """Find the probe whose checkpoint is in a folder. Raises BadInput."""
        path = Path(folder) / "probe.json"
        data = read_bytes(path, "a probe's record", hint="`kvconform probe` writes such a folder")
        try:
            said = read_json(data)
            recipe, words = said["recipe"], (said["architecture"], said["layers"], said["output"])
            adapters, match = bool(said.get("adapters")), bool(said.get("match"))
        except (ValueError, KeyError, TypeError, RecursionError) as e:
            raise BadInput(f"{path}: cannot be read as a probe's record ({e})") from None
        if recipe != RECIPE or not all(isinstance(word, str) for word in words):
            raise BadInput(f"{path}: made by another version of kvconform (recipe {recipe}, here {RECIPE})")
        return cls.of(*words, adapters, match)

    @cached_property
    def network(self) -> Network:
        """The network in float64, with exactly the weights of the checkpoint, and of the adapter."""
        found = weights.network(self.architecture, self.layout, self.output == "tokens")
        return lora.changed(found, self.layout, self.adapter) if self.adapter else found

    def with_adapter(self, name: str) -> Probe:
        """Give the probe as it computes with an adapter."""
        return replace(self, adapter=name)

    @property
    def layers(self) -> str:
        """The layers in words."""
        return ",".join(map(str, self.layout.layers))

    def write(self, folder: str | Path, dtype: str = "f32", file_format: str = "safetensors") -> dict[str, Any]:
        """Write the weights, what an engine reads beside them, and probe.json, which it returns. Raises
        BadInput, or CannotRun where a format needs a package."""
        for name, known in ((dtype, DTYPES), (file_format, tuple(WRITERS))):
            if name not in known:
                raise BadInput(f"no dtype or format {name!r}; there are {', '.join(known)}")
        if self.adapters:
            lora_files.demand(file_format)
        into = Path(folder)
        demand_own(into, LEFT, "probe.json")
        try:
            digest = WRITERS[file_format](self, into, dtype)
            if self.adapters:
                lora_files.write(self.architecture, self.layout, into, file_format)
            record = self.record() | {"format": file_format, "dtype": dtype, "sha256": digest}
            leave(into, {"probe.json": record})
        except OSError as e:
            raise BadInput(f"{folder}: cannot be written ({e.strerror})") from None
        return record

    def record(self) -> dict[str, Any]:
        """Say what this probe is."""
        return {
            "recipe": RECIPE,
            "architecture": self.architecture.name,
            "layers": self.layers,
            "output": self.output,
            **({"match": True} if self.layout.match else {}),
            "content_ids": self.layout.ids,
            "vocabulary": self.layout.vocabulary,
            "lost": self.architecture.losses(self.layout.layers),
            **({"adapters": list(lora.ADAPTERS)} if self.adapters else {}),
        }

    def checked(self, tokens: Sequence[int]) -> list[int]:
        """Give a prompt's tokens, if all are content ids. Raises BadInput."""
        wrong = [t for t in tokens if not 0 <= t < self.layout.ids]
        if wrong or not tokens:
            raise BadInput(f"tokens are content ids, 0 to {self.layout.ids - 1}, at least one; given {wrong[:5]}")
        if len(tokens) > LONGEST:
            raise BadInput(f"a text of {len(tokens)} tokens; at most {LONGEST} are read")
        return list(tokens)


def _elements(architecture: Architecture, layout: Layout) -> int:
    """Count the elements of a checkpoint, but for some small tensors."""
    queries = layout.heads * (
        2 if architecture.latent or architecture.gated else 1
    )  # half are without RoPE, or gates
    rows = (queries + layout.heads + 2 * layout.kv_heads) * HEAD_DIM + 3 * FEED_FORWARD
    linear = len(layout.blocks) - len(layout.layers)
    more = linear_weights.rows(layout) + 3 * FEED_FORWARD
    return layout.hidden * (2 * layout.vocabulary + (len(layout.layers) - linear) * rows + linear * more)
