"""The config of a trace, with the sizes that the trigger of an attack names."""

from __future__ import annotations

import re
from random import Random
from typing import Any, NamedTuple

from hostile.attacks.grammar import Attack
from hostile.attacks.triggers.forms import form_of
from hostile.attacks.triggers.sizes import OF_BATCHES


class Sizes(NamedTuple):
    """What a trigger asks of a trace: fields of the config, rows at once, sequences, and calls of the method."""

    fields: dict[str, Any]
    rows: int
    sequences: int
    calls: int


FORMED: dict[str, dict[str, Any]] = {
    "codes of 4 bits": {"form": "int4/2"},
    "codes that are floats": {"form": "e5m2/1"},
    "scales that are given": {"form": "e4m3/h:0.5:2"},
    "a scale for a row": {"form": "int8/1"},
    "blocks of 32": {"form": "q8_0,q4_0", "k_dim": 64, "v_dim": 32},
    "latent rows": {"form": "latent"},
    "a form of keys and one of values": {"form": "int8/2,int4/3"},
}
"""Forms of rows that triggers are about."""

TURNS = {
    "the ends of a ramp are exact": " scaling=yarn:4:64:8:1:exact",
    "a row has three positions": " sections=1,1,2 columns=2",
}
"""How rows are turned that triggers are about."""

NEEDED: dict[str, dict[str, int]] = {"sequence": {"batch": 2}, "layer": {"layers": 3}}
"""Fields of the config that a change of one of several needs."""


def sizes(attack: Attack) -> Sizes:
    """Those of an attack's trigger, read from its name."""
    said = attack.trigger.id
    named = {size: int(start) for size, start in re.findall(r"(\w+) from (\d+)", said) if size != "element"}
    if (place := attack.trigger.place) is not None:
        many = place.index + 2
        named |= {"h": {"kv_heads": many}, "b": {"batch": many}, "l": {"layers": many}, "s": {"m": many}}.get(
            place.axis, {"k_dim": many, "v_dim": many}
        )
    if token := named.pop("token", 0):
        named |= {"kv_heads": 16, "k_dim": -(-token // 16)}
    rows, several = max(named.pop("n", 0), named.pop("length", 0)), named.pop("m", 3)
    calls = re.search(r"call (\d+)", said)
    needed = NEEDED.get(attack.effect.id.partition("last ")[2].partition(" ")[0], {})
    fields: dict[str, Any] = {"kv_heads": 2, **needed, **named}
    fields |= {"dtype": said[:4].strip(",")} if said.startswith(("bf16", "f32")) else {}
    fields |= {"batch": 3} if "the first sequence" in said else {}
    fields |= FORMED.get(form_of(said), {})
    return Sizes(fields, rows, several, int(calls[1]) if calls else 0)


def layers(asked: Sizes, random: Random, fold: str = "") -> dict[str, Any]:
    """Layers of several views, as many as are asked for, one of them as large; some with one that shares; with
    `fold`, one that is a state or a convolution."""
    n, size = max(2, asked.fields.get("layers", random.choice((2, 3)))), random.choice((2, 3, 4))
    views = ["full", f"window:{size}", f"chunk:{size}", f"sinks:1:{size}", f"window:{size + 2}"]
    of = [random.choice(views) for _ in range(n)]
    of[random.randrange(n)] = f"{random.choice(('window', 'chunk'))}:{asked.fields.get('view', size)}"
    of += ["share:0"] * random.choice((0, 1)) if not fold else [fold.format(size)]
    return {"of": ",".join(of), "layers": n + len(fold.split(",")) * bool(fold)}


def fold_of(attack: Attack, random: Random) -> str:
    """The view that folds tokens, where an attack is about one; a state alone has states."""
    words = {"a layer is a state": "state", "a layer is a convolution": "conv:{}"}
    told = random.choice(("state", "state,state")) if attack.where.method == "states" else ""
    return told or words.get(attack.trigger.id, "")


def opening(attack: Attack, asked: Sizes, random: Random) -> str:
    """The kind and its sizes: the trigger's, and room for what is drawn."""
    room = 4 * asked.rows + 24 + 3 * asked.calls
    own: dict[str, Any] = {
        "ring": {"window": random.choice((3, 6, 40))},
        "bounded": {"max_len": random.choice((8, room))},
        "sink": {"window": random.choice((6, 12)), "sinks": 2},
        "store": {"layers": 3, "max_len": random.choice((room, 12))},
        "page": {"page_size": random.choice((2, 4)), "pages": room},
        "ragged": {
            "padding": random.choice(("left", "right")),
            "batch": asked.sequences,
            **random.choice(({}, {"window": random.choice((2, 3, 6, 40))})),
        },
        "bucket": {"layers": 2, "bounds": f"4-8-{max(16, room)}"},
        "keyed": {"page_size": random.choice((1, 2, 4)), "pages": random.choice((4, 8, room))},
        "copy": {"capacity": room, "layout": random.choice(("token", "head"))},
        "layers": layers(asked, random, fold_of(attack, random)),
    }.get(attack.base.kind, {})
    fields = own | {
        name: n
        for name, n in asked.fields.items()
        if name not in (*own, "view") and (name != "batch" or attack.base.kind in OF_BATCHES)
    }
    return f"{attack.base.kind} " + " ".join(f"{name}={value}" for name, value in fields.items())
