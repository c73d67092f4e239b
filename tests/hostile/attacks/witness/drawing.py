"""Draws a trace for an attack."""

from __future__ import annotations

import re
from collections.abc import Collection
from random import Random

from hostile.attacks.grammar import Attack
from hostile.attacks.witness.config import TURNS, Sizes, opening
from hostile.attacks.witness.templates import CLOSING, FEEDS, FILLS, OPERATION, TEMPLATES, uses
from kvspec.errors import BadInput
from kvspec.notation import from_sentence
from kvspec.trace import Trace


def filled(template: str, attack: Attack, asked: Sizes, random: Random) -> str:
    """A template with numbers."""
    more = [asked.rows, asked.rows + 1] if asked.rows else [6] if attack.trigger.sort == "content" else []
    n, m = random.choice((1, 2, 3, *more)), asked.sequences
    last = random.choice((0, 1, 2, 3, 5, 8, n, max(0, asked.rows - 1), 99999))
    some = [random.choice((0, 1, 2, n, n)) for _ in range(m)]
    order = random.sample(range(m), m) if random.random() < 0.8 else [random.randrange(m) for _ in range(m)]
    return template.format(
        n=n,
        p=last,
        s=random.randrange(m),
        t=random.randrange(m),
        l=random.randrange((attack.base.kind == "store" and asked.fields.get("layers", 3)) or 1),
        m=random.choice((m, m, 2)),
        fill=random.choice(FILLS),
        heads=2 * asked.fields["kv_heads"],
        sinks=",".join(str(97 * h % 512 - 256) for h in range(2 * asked.fields["kv_heads"])),
        list=",".join(map(str, some)),
        few=",".join(str(random.choice((0, 0, 1))) for _ in range(m)),
        order=",".join(map(str, order)),
    )


def drawn(attack: Attack, asked: Sizes, random: Random, claimed: Collection[str]) -> Trace | None:
    """A trace of what is claimed; None if it is none. It ends with what the trigger and the method are about."""
    templates = [t for t in TEMPLATES[attack.base.kind] if uses(t) <= set(claimed)]
    name = OPERATION.get(attack.where.method, attack.where.method)
    own = [t for t in templates if re.search(rf"\b{name}\b", t)] or templates
    if attack.trigger.sort == "content":
        own = [t for t in own if "{fill}" in t] or own
    after = re.match(r"right after (\w+)", attack.trigger.id)
    refused = ["rewind 99999"] if "a rewind was refused" in attack.trigger.id else []
    before = [t for t in templates if after and t.split("; ")[-1].split()[0] == OPERATION.get(after[1], after[1])]
    chosen = [random.choice(templates) for _ in range(random.randint(2, 10))]
    for _ in range(2):
        chosen += [random.choice(before)] if before else refused
        chosen += [random.choice(own)] * (3 if "in a row" in attack.trigger.id else 1)
    if asked.calls:
        again = random.choice([t for t in own if ";" not in t] or own)
        feed = random.choice(([], [FEEDS[attack.base.kind]]))
        chosen += [*feed, again] * asked.calls
    ops = [filled(template, attack, asked, random) for template in chosen]
    if attack.trigger.id == "nobody looked since":
        ops[-3:] = [f"run 1 {{{'; '.join(ops[-3:])}}}"]
    ops += [filled(template, attack, asked, random) for template in CLOSING.get(attack.base.kind, ())]
    first = {"page": "admit; append 3", "store": f"append 2; batch {asked.sequences}"}.get(attack.base.kind)
    ops = ([first] if first and uses(first) <= set(claimed) and random.random() < 0.8 else []) + ops
    if attack.base.kind == "page":
        ops = ["admit"] * random.choice((1, asked.sequences)) + ops
    if name == "rotate":
        of = {"kv_heads": 2, "k_dim": 8, "batch": 1} | asked.fields
        ops += [
            f"rotate {asked.rows or 2} 3 "
            + " ".join(f"{name}={of[name]}" for name in ("kv_heads", "k_dim", "batch"))
            + TURNS.get(attack.trigger.id, "")
        ]
    elif attack.trigger.id in TURNS:
        sequence = {"page": "sequence=0", "store": "layer=0"}.get(attack.base.kind, "")
        ops += [f"attend 2 rope=neox {sequence}{TURNS[attack.trigger.id]}"]
    try:
        return from_sentence(f"{opening(attack, asked, random)}: {'; '.join(ops)}")
    except BadInput:
        return None
