"""Shows that an attack is wrong: a trace on which it answers otherwise than its base. No judge has a part in that.

Traces are drawn from templates of each kind, at the sizes that the trigger names. What no trace shows is no attack.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache, partial
from random import Random
from typing import Any, NamedTuple

import numpy as np

from hostile.attacks.grammar import Attack
from hostile.attacks.judging import Noting
from hostile.attacks.triggers import OF_BATCHES, form_of
from kvconform.bugs.time_limit import Hang, time_limit
from kvconform.generate.fit_to_adapter import suits
from kvconform.judge import trial
from kvconform.oracle.trace_inputs import TraceInputs
from kvspec.contract import Description, description
from kvspec.errors import BadInput
from kvspec.notation import from_sentence, sentence
from kvspec.operations.arguments import IN_RUNS
from kvspec.operations.table import CHAPTER_OF
from kvspec.registry import KINDS
from kvspec.session.driver import Session
from kvspec.session.step import Step
from kvspec.trace import Trace

TRIES, SECONDS = 100, 6.0
"""Traces that are drawn for an attack, and the time of the processor that may go into them."""

PARCELS = (
    "pack x; append {n}; unpack x",
    "pack x; carry x y axes=PNBHD page=2; free; unpack y",
    "pack x; carry x y axes=BHDPN cut=1; unpack y",
    "pack x; carry x y axes=PNBHKD page=2; collect y x w; unpack w",
)
TRANSFERS = (
    *(
        "send {s}",
        "expect {n}",
        "lose 0",
        "send {s}; drop {s}; sent 0 x",
        "send {s}; append 1 sequence={s}; sent 0 x",
    ),
    *("send {s}; send {t}; sent 1 x; sent 0 y", "send {s}; lose 0; drop {s}", "expect {n}; lose 0"),
    *(
        "pack x sequence={s}; expect {n}; arrive 0 x",
        "append {n} sequence={s}; send {s}; sent 0 x; expect {n}; arrive 0 x",
    ),
)
OF_ONE = (
    *(
        "append {n}",
        "append {n}",
        "append 1",
        "append {n} fill={fill}",
        "append 2 v_dim=3",
        "rewind {p}",
        "rewind {p}",
    ),
    *("view", "free", "ask {p}", "mask causal & window=3", "plan {n}", "rotate {n} {p}"),
    *("snapshot s", "snapshot s {p}", "restore s {p}", "snapshot s; rewind {p}; restore s {p}"),
    *("speculate r A; draft r {n}; commit r {p}", "speculate r A; draft r 2; draft r {n}; abandon r"),
    *("attend {n}", "attend {n} splits=3 heads={heads}", "attend {n} rope=neox", "attend {n} softcap=3"),
    *("attend {n} through causal & window=2", "attend 1 rope=norm splits=2"),
    "attend {n} softcap=3 rope=neox splits=2 through causal & window=2",
    "attend {n} heads={heads} head_sinks={sinks}",
    *("askappend {n}", "snapshot s; rewind {p}; askrestore s {p}"),
    *PARCELS,
)
TEMPLATES: dict[str, tuple[str, ...]] = {
    "growing": OF_ONE,
    "ring": OF_ONE,
    "bounded": (*OF_ONE[:13], "askappend {n}", *PARCELS),
    "sink": (*OF_ONE[:12], "positions", "keep 0,{p}", "append 3; keep {p}", "askappend {n}", *PARCELS),
    "store": (
        *("append {n}", "append {n} fill={fill}", "append 1", "append {n} layer={l}", "append 1 v_dim=3"),
        *(
            "rollback {p}",
            "setlength {l} {p}",
            "save t",
            "save t; reset; load t",
            "save t; load t v_dim=3",
            "reset",
            "zero",
        ),
        *(
            "batch {m}",
            "scatter {s} {p}",
            "append {n}; scatter {s} {n}; scatter {t} 1",
            "scatter {s} {p} layer={l}",
        ),
        *(
            "step",
            "step",
            "step; step",
            "rollback {p} sequence={s}",
            "resetbatch",
            "capture w; replay w",
            "replay w",
        ),
        *("attend {n} layer={l}", "attend {n} layer={l} splits=2 rope=neox", "attend {n} layer={l} softcap=3"),
        *("attend {n} layer={l} through causal & window=2", "attendbatch {l}", "plan 1"),
    ),
    "page": (
        *(
            "admit",
            "append {n} sequence={s}",
            "append {n} sequence={s} fill={fill}",
            "append 1",
            "append 1 sequence={s}",
        ),
        *(
            "append {n}",
            "append 2 v_dim=3",
            "fork {s} {p}",
            "fork 0 {p}; append {n} sequence=1",
            "truncate {s} {p}",
        ),
        *TRANSFERS,
        *("pack x sequence={s}; drop {s}; unpack x", "pack x sequence={s}; carry x y axes=PNBHD cut=1; unpack y"),
        *(
            "drop {s}",
            "gather 0,1 {p}",
            "gather 1,0 {p}",
            "attend {n} sequence={s}",
            "attend {n} splits=2 rope=neox",
        ),
        *("attend {n} softcap=3", "attend {n} through causal & window=2", "plan 1"),
    ),
    "ragged": (
        *("feed {list}", "feed {list}", "feed {list} fill={fill}", "trim {few}", "trim {few}", "trim {list}"),
        *("filter {order}", "reorder {order}", "repeat 2", "repeat 1", "feed {list} v_dim=3", "filter 99"),
        *("open B; B: feed {list}; extend B", "open B; B: feed {list}"),
    ),
    "bucket": (
        *(
            "prefill {n}",
            "prefill 3",
            "decode",
            "decode; decode",
            "decode heads={heads} splits=2",
            "block {n}",
            "bind",
        ),
        *(
            "bind refresh=1",
            "unbind",
            "sync",
            "cut {p}",
            "encode {n}",
            "cross {n}",
            "prefill 9999",
            "decode past=99",
        ),
    ),
    "layers": (
        *(
            "askappend {n}",
            "append {n}",
            "append {n}",
            "append 1",
            "append {n} fill={fill}",
            "append 2 v_dim=3",
            "append 1 layers=99",
        ),
        *("rewind {p}", "rewind {p}", "free", "ask {p}", "append {n}; rewind {p}; append 1"),
    ),
    "keyed": (
        *("request xy", "request xyxy chunk=1", "request xyxyzz", "request yx salt=a", "request xyz adapter=b"),
        *("compute {s} {n}", "compute {s} 1", "answer {s} xy", "answer {s} z", "propose {s} xy; accept {s} {n}"),
        *("finish {s}", "finish {s}", "finish 0", "abort {s}", "evict {n}", "clear", "match xyxyzz", "match xyz"),
    ),
    "copy": ("copy {n} {p}", "copy {n} {p} fill={fill}", "copy {n} {p} sliding=1", "copy 2 999999", "alias 2 0 2"),
}
"""Operations of each kind: n rows, position p, sequences s and t, layer l, m sequences."""

FILLS = ("legible", "alike", "bits", "edges", "even", "random", *IN_RUNS)


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


OPERATION = {
    "set_length": "setlength",
    "rollback_sequence": "rollback",
    "attend_batch": "attendbatch",
    "can_rewind": "ask",
    "can_append": "askappend",
    "can_restore": "askrestore",
}
"""Operations whose names are not those of their methods."""


def drawn(attack: Attack, asked: Sizes, random: Random, claimed: Collection[str]) -> Trace | None:
    """A trace of what is claimed; None if it is none. It ends with what the trigger and the method are about."""
    templates = [t for t in TEMPLATES[attack.base.kind] if uses(t) <= set(claimed)]
    name = OPERATION.get(attack.where.method, attack.where.method)
    own = [t for t in templates if re.search(rf"\b{name}\b", t)] or templates
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


FEEDS = {
    **dict.fromkeys(("growing", "ring", "bounded", "sink", "store", "page"), "append 2"),
    "ragged": "feed {list}",
    "bucket": "prefill 3",
    "copy": "copy 1 0",
    "keyed": "request xy",
    "layers": "append 2",
}
CLOSING = {"bucket": ("decode", "cross 2"), "store": ("append 1",), "growing": ("append 1",), "ring": ("append 1",)}
CLOSING |= {"layers": ("append 1",)}
"""What shows in a kind what lies hidden."""


@cache
def uses(template: str) -> set[str]:
    """The chapters that a template needs."""
    names = [part.split(": ")[-1].split()[0] for part in template.split("; ")]
    found = {CHAPTER_OF[name] for name in names if name in CHAPTER_OF} - set(KINDS)
    return (
        found
        | ({"rope"} if "rope=" in template else set())
        | ({"batch"} if "sequence={s}" in template and "rollback" in template else set())
    )


def differs(attack: Attack, trace: Trace, about: Description) -> int:
    """The operations of a trace until the attack answers otherwise than its base; 0 if it does not."""
    observed = trial.observables(trace, about, trial.level_of(trace, about))
    wrong = Noting(attack.adapter(), observed)
    found = answers(wrong, trace)
    right = answers(Session(attack.base.make(), observed), trace) if wrong.adapter.struck else []
    return next((i for i, pair in enumerate(zip(found, right, strict=False)) if pair[0] != pair[1]), 0)


def answers(session: Session, trace: Trace) -> list[Any]:
    """What a session shows at the opening and after each operation."""
    inputs, shown = TraceInputs(trace), [told(session.begin(trace.kind, trace.config))]
    for op in trace.ops:
        step = session.do(op, inputs.make(op))
        shown.append(told(step))
        inputs.done(op, step.result)
    return shown


def told(step: Step) -> Any:
    """What a step shows, in a form that can be compared."""
    arrays = {n: None if a is None else (np.shape(a), np.asarray(a).tobytes()) for n, a in step.arrays.items()}
    return step.result in ("ok", "any"), sorted(step.values.items(), key=str), arrays


def found(attack: Attack, tries: int = TRIES) -> Trace | None:
    """The first of some traces that shows an attack, without the operations that it does not need; None where none
    does in the time that there is."""
    about, asked, random = description(attack.base.make().describe()), sizes(attack), Random(attack.id)
    drawn_ = (drawn(attack, asked, random, about.chapters) for _ in range(tries))
    showing: Trace | None = None
    try:
        with time_limit(SECONDS):
            for trace in (t for t in drawn_ if t is not None and suits(t, about)):
                if n := differs(attack, trace, about):
                    showing = trace.cut(n)
                    showing = shortened(showing, partial(differs, attack, about=about))
                    break
    except Hang:
        pass
    return showing


def shortened(trace: Trace, shows: Any) -> Trace:
    """The trace without each operation that can be left out."""
    i = len(trace.ops) - 2
    while i >= 0:
        less = Trace(trace.kind, trace.config, (*trace.ops[:i], *trace.ops[i + 1 :]))
        if written(less) and (n := shows(less)):
            trace = less.cut(n)
        i = min(i, len(trace.ops)) - 1
    return trace


def written(trace: Trace) -> bool:
    """Tell whether a trace can be written: it names nothing that is not there."""
    try:
        return from_sentence(sentence(trace)) == trace
    except BadInput:
        return False


NONE = "no difference"


def verdict(attack: Attack, trace: Trace) -> str:
    """What the suite's judge says of an attack on a trace."""
    base: Any = attack.adapter()
    seen = trial.on(trace, partial(Session, base), description(base.describe()))
    return f"{', '.join(seen.blamed)}: {seen.differences[0].message}" if seen.failed else NONE


__all__ = ["NONE", "found", "sentence", "verdict"]
