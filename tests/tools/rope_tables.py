"""What transformers computes for the RoPE of released models: `python -m tools.rope_tables [--write]`.

Compares it with what is frozen in `support/samples/rope_tables.json`, to the bit where the release is the same, and
with the reference, within the bound of angles in f32. `--write` freezes it. Ends with status 1 if anything differs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib import import_module

import numpy as np

from support.running.rope_bound import beyond
from support.samples.released_ropes import FROZEN, RELEASED, Call, Released, frozen


def computed(released: Released) -> Iterator[Call]:
    """What the rotary embedding of transformers gives for each call."""
    import torch

    module, configured, embedding = released.model
    there = import_module(f"transformers.models.{module}.configuration_{module}")
    code = import_module(f"transformers.models.{module}.modeling_{module}")
    heads, told = 2, {**released.parameters, "rope_theta": float(released.parameters["rope_theta"])}
    for positions in released.calls:
        config = getattr(there, configured)(
            hidden_size=heads * released.dims,
            num_attention_heads=heads,
            head_dim=released.dims,
            max_position_embeddings=released.context,
            rope_parameters=told,
        )
        handed = torch.tensor([positions]) if released.sections is None else torch.tensor(positions)[:, None]
        both = getattr(code, embedding)(config)(torch.zeros(1), handed)
        cosines, sines = (x[0, :, : released.dims // 2].numpy() for x in both)
        yield Call(np.array(positions), cosines, sines)


def _text(made: dict[str, list[Call]], release: str) -> str:
    models = {
        name: [{key: value.tolist() for key, value in call._asdict().items()} for call in calls]
        for name, calls in made.items()
    }
    return json.dumps({"made_by": f"transformers {release}", "models": models}, separators=(",", ":")) + "\n"


def main(arguments: list[str]) -> int:
    """Compute, compare and freeze; say what differs."""
    import transformers

    made = {released.name: list(computed(released)) for released in RELEASED}
    if "--write" in arguments:
        FROZEN.write_text(_text(made, transformers.__version__), encoding="utf-8")
    wrong = [f"{r.name}: {found}" for r in RELEASED for call in made[r.name] if (found := beyond(r, call))]
    same = json.loads(FROZEN.read_text(encoding="utf-8"))["made_by"].split()[1] == transformers.__version__
    if same:
        wrong += [f"{name}: not as frozen" for name, calls in made.items() if not _alike(calls, frozen(name))]
    sys.stdout.write("\n".join(wrong or [f"{len(made)} models as the reference has them"]) + "\n")
    return int(bool(wrong))


def _alike(calls: list[Call], others: list[Call]) -> bool:
    return all(
        all(a.tobytes() == b.tobytes() for a, b in zip(x, y, strict=True))
        for x, y in zip(calls, others, strict=True)
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
