"""Operations of each kind from which traces are drawn."""

from __future__ import annotations

from functools import cache

from kvspec.operations.arguments import IN_RUNS
from kvspec.operations.table import CHAPTER_OF
from kvspec.registry import KINDS

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
    *("speculate r A; draft r {n} fill={fill}; commit r {p}", "speculate r A; draft r 2; draft r {n}; abandon r"),
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
        *("attendblock {list} fill={fill}", "attendblock {list} fill=fine heads={heads}"),
        *("attendblock {list} heads=3", "attendblock {list} beside=numbers", "attendblock {list} v_dim=3"),
        *("open B; B: feed {list}; extend B", "open B; B: feed {list}"),
    ),
    "bucket": (
        *(
            "prefill {n}",
            "prefill {n} fill={fill}",
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
        *("pack x", *PARCELS[:3], "pack x; carry x y axes=PNBHD page=2 layers=2,0,1; rewind {p}; unpack y"),
        *("pack x; carry x y axes=BPNHD layers=0; unpack y", "pack x; append 1; pack y; collect x y w; unpack w"),
        "append {n}; pack x; free; append {n}; append 1; unpack x",
        *("branch {n}", "branch {n} fill={fill}", "branch 3 on=-1,-1,1", "branch 1", "branch {n}; settle 0"),
        *("branch 3 on=-1,-1,1; settle 2", "branch 2; branch 2 on=0,2; settle 3", "settle {p}"),
        *("branch 2 on=-1,0 fill={fill}", "branch 2 on=-1,9", "branch 2 v_dim=3", "append 1; settle 0"),
        "branch 2 on=-1,-1; settle -1; branch 1",
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

OPERATION = {
    "set_length": "setlength",
    "rollback_sequence": "rollback",
    "attend_batch": "attendbatch",
    "can_rewind": "ask",
    "can_append": "askappend",
    "can_restore": "askrestore",
    "attend_block": "attendblock",
}
"""Operations whose names are not those of their methods."""

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
