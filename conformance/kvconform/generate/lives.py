"""Lives at real sizes: few traces for each kind, that do there what walks and worked examples do in small caches.

A walk draws its numbers, and a worked example is short. So some things that callers do met small caches alone, and
engines change what they do with many rows, heads, sequences or layers:

- a list of many items, such as a choice of rows, a table, a length for each of many sequences, a tree of drafts;
- a place inside of a page, a window or a tile: one row before its end, its middle, the row behind it;
- what is read again at the length at which it was read before, when rows have changed;
- two chapters at once: forks and forms, drafts and windows, captured work and rollbacks, snapshots and choices.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from kvspec import notation
from kvspec.trace import Trace

WIDE = "kv_heads=9 k_dim=130 v_dim=128"
"""Rows with more heads than a tile of 8, and wider than 128 elements."""

HEADS = "kv_heads=17 k_dim=24 v_dim=20"
"""Rows of many heads."""

CODES = "kv_heads=9 k_dim=128 v_dim=128 form=int8/32"
"""The same heads in a form with several scales a row."""

AGAIN = "view; rewind {back}; append {n}; view"
"""A look at a length that was looked at before, at rows that came since."""

UNLIKE = [("1" * n + "0" + "1" * 20)[:20] for n in range(9)]
"""What one query may see of 20 rows, each time another row less."""

MASKS, OF_SEQUENCES = ",".join(UNLIKE), "+".join(UNLIKE[:6])
"""Masks of nine heads, and of six sequences."""

TREE = "-1,0,1,0,3,4,1,6,7,8,9,-1"
"""What the drafts of a tree with long branches hang on."""


def _numbers(*each: int) -> str:
    return ",".join(map(str, each))


def _times(text: str, n: int, joint: str = "; ") -> str:
    return joint.join([text] * n)


def _each(text: str, numbers: Iterable[object], joint: str = "; ") -> str:
    return joint.join(text.format(n=n) for n in numbers)


GROWING = (
    f"growing batch=3 {WIDE} dtype=f32 step=16: append 20 fill=edges; append 1 fill=bits; "
    f"{AGAIN.format(back=3, n=18)}; speculate r A; draft r 12 on={TREE}; mask round=r causal; choose r 10; "
    "append 13; mask causal & window=5 & window=30; append 1; pack x; carry x y axes=BHDPN page=16 flip=30000; "
    "unpack y; carry x z axes=PNBHKD page=7; unpack z; append 2",
    "growing kv_heads=2 k_dim=40 v_dim=8: append 40; plan 300; snapshot a; append 44; snapshot b 40; merge a b "
    "s; append 20; restore s 84; append 1; snapshot t 33; split t 70 p q; restore q 84; append 2; view; "
    "restore p 70; append 1",
    f"growing {CODES} residual=16: append 40 fill=fine; rewind 30; view; append 1 fill=fine; append 20 "
    "fill=fine; snapshot s; append 3; restore s 51; view; speculate r A; draft r 6 fill=fine; draft r 3 "
    "fill=fine; commit r 7; view; pack x; append 1; carry x y axes=BHDPN page=5; unpack y; append 1 fill=fine; "
    "view",
    "growing kv_heads=2 k_dim=8 v_dim=8 dtype=f32: run 20 {append 75 fill=hay}; append 1 fill=needle; append 1 "
    "fill=needle; run 8 {append 75 fill=hay}; attend 1 splits=3 heads=6 queries=tiny fill=needle through "
    "causal & window=602; attend 5 fill=needle; attend 2 rope=neox splits=2 softcap=9; attend 1 rope=norm "
    "scaling=linear:4 through causal & window=20",
    f"growing kv_heads=3 k_dim=20 v_dim=18 dtype=f32: append 19; attend 1 heads=9 through {MASKS}; mask "
    f"[{_numbers(*range(9))}] & {MASKS}; append 20; attend 2 heads=24 head_sinks={_numbers(*range(24))}; attend "
    "1 heads=24 splits=2 softcap=5 into=1; attend 1 heads=24; attend 1 rope=norm scaling=yarn:4:64:8:1:2 "
    "through causal & window=9; rotate 3 5 k_dim=128 dims=64 kv_heads=9; rotate 5 9 k_dim=128 columns=3 "
    "sections=24,20,20:interleaved; rotate 4 7 k_dim=128 columns=3 sections=16,24,24; "
    f"rotate 4 62 k_dim=32 scaling=longrope:8:64:{_numbers(*[1] * 16)}:{_numbers(*range(2, 18))}",
    f"growing kv_heads=2 k_dim=20 v_dim=18 batch=6: append 19; attend 1 through {OF_SEQUENCES}; mask "
    f"{OF_SEQUENCES}",
    "growing kv_heads=1 k_dim=576 v_dim=512 dtype=bf16 form=latent: append 8; attend 1 heads=4; attend 1",
    "growing kv_heads=9 k_dim=128 v_dim=128 form=int4a/32,e4m3/h:0.5:1:2: append 20 fill=fine; append 20 "
    "fill=ramp; attend 1; rewind 30; append 1 fill=random; snapshot s; append 3; restore s 31; view",
    "growing kv_heads=9 k_dim=20 v_dim=18: append 40 resident=1; snapshot s; append 44 resident=1; restore s "
    "40; append 1; attend 1 resident=1 heads=18",
    "growing kv_heads=16 k_dim=20 v_dim=18: append 20; pack p; open B kv_heads=6 rank=0/16; B: unpack p; B: "
    "pack q; open C kv_heads=10 rank=6/16; C: unpack p; C: append 0; C: pack r; carry r s axes=PBHND page=7; "
    "collect q s t; rewind 3; unpack t; append 1",
    f"growing kv_heads=2 k_dim=20 v_dim=18: {_each('open {n}', 'BCDEFGH')}; append 20; "
    f"{_each('{n}: append 17', 'BCDEFGH')}; speculate r ABCDEFGH; draft r 6; "
    f"{_each('{n}: draft r 6', 'BCDEFGH')}; commit r 5; H: append 1; append 1",
)

RINGS = (
    f"ring {WIDE} window=33 dtype=f32: append 33; append 1; ask 33; append 5; append 70; plan 1; append 1; "
    "append 66; view; append 1 fill=edges; snapshot s; append 2; restore s 177; append 1; restore s 177; "
    "append 1; view",
    f"ring {WIDE} window=20 batch=2: append 7; {AGAIN.format(back=3, n=4)}; rewind 2; {_times('append 1', 19)}; "
    f"mask {MASKS}; speculate i A isolated=1; draft i 3; abandon i; append 1; view",
    f"ring {WIDE} window=9: append 5; append 7; speculate r A; draft r 12 on={TREE}; mask round=r causal; "
    "choose r 10; append 1; append 1; view",
    f"ring {CODES} window=9: append 9 fill=fine; append 1 fill=random; append 1 fill=fine; append 1; view; "
    "snapshot s; append 1; restore s 12; append 1 fill=fine; view; append 19 fill=fine; append 1 fill=random",
)

SINKS = (
    f"sink {WIDE} window=20 sinks=6: append 18; {_times('append 1', 6)}; view; append 9; append 1; append 1; "
    "positions; keep 34,1,3,0,22,2,4,5,33,32,31,30; append 1; snapshot s; append 8; append 2; positions; view; "
    "restore s 36; append 1; append 1; positions; view",
    "sink kv_heads=2 k_dim=20 v_dim=18 window=90 sinks=5 beside=1: append 120; pack x; append 1; free; unpack "
    f"x; append 1; view; append 95; {_times('append 1', 3)}; pack y; carry y z axes=PBHND page=16; unpack z; "
    "append 2; view",
)

PAGES = (
    f"page {WIDE} page_size=16 pages=30: admit; append 150; fork 0 47; append 1 sequence=1; append 1; truncate "
    "0 96; truncate 0 32; append 3; fork 0 31; append 2 sequence=2; append 18 sequence=1; truncate 1 40; fork "
    "1 40; append 1 sequence=1; append 1 sequence=3; truncate 3 32; append 17 sequence=3",
    f"page kv_heads=2 k_dim=20 v_dim=18 page_size=4 pages=40: admit; append 19; {_times('fork 0 17', 10)}; "
    "append 1 sequence=10; drop 3; admit; append 2 sequence=3; drop 0; truncate 9 0; "
    f"{_each('drop {n}', range(4, 9))}; admit; append 5 sequence=0; gather {_numbers(*[0, 1, 2, 3] * 5)} 79; "
    f"gather {_numbers(*[3, 2, 1, 0] * 5)} 74",
    f"page {CODES} page_size=16 pages=12: admit; append 31 fill=fine; fork 0 31; append 1 sequence=1 fill=fine; "
    "append 2 fill=fine; attend 1 sequence=1; fork 1 20; append 2 sequence=2; pack x sequence=2; carry x y "
    "axes=BHDPN page=7; drop 1; unpack y",
    "page kv_heads=2 k_dim=32 v_dim=8 dtype=f32 page_size=16 pages=20: admit; append 50; fork 0 35; attend 1 "
    "sequence=1 rope=neox; attend 3 sequence=0 rope=norm splits=2; fork 1 36; attend 2 sequence=2 rope=norm; "
    "attend 1 sequence=2 softcap=3 through causal & window=20; send 0; send 1; send 2; expect 20; drop 1; lose "
    "1; send 2; sent 0 x; truncate 0 16; lose 2; send 0",
)

STORES = (
    "store kv_heads=5 k_dim=24 v_dim=20 layers=35 max_len=40: append 20; append 3 layer=34; save t; append 1; "
    "load t; setlength 33 2; append 1 layer=33; setlength 33 20; setlength 3 39; rollback 19; batch 9; run 1 "
    f"{{{_each('scatter {n} 1{n}', range(9))}}}; capture w; replay w; step; rollback 6 sequence=8; rollback 2 "
    "sequence=3; replay w; step; batch 6; scatter 5 9; step; step; batch 9; step; replay w",
    "store kv_heads=2 k_dim=20 v_dim=18 layers=9 max_len=24: append 3 layer=0; append 2 layer=8; append 18 "
    "layer=4; save t; append 4; load t; append 1; zero; load t; fit 99999999 reserve=1 most=300",
    f"store {CODES} layers=2 max_len=70: append 64 fill=fine; append 1 fill=fine; batch 5; scatter 4 65; "
    "scatter 0 32; scatter 2 31; step fill=fine; step; attendbatch 1 heads=18; append 2 layer=1 fill=fine; "
    "save t; load t",
)

BUCKETS = (
    "bucket kv_heads=9 k_dim=24 v_dim=20 batch=5 layers=2 bounds=36-70: prefill 34; decode; cut 34; sync; "
    "decode; cut 33; decode; encode 67; cross 3; decode; decode; cut 35; decode; block 19; unbind; sync; decode",
)

COPIES = (
    f"copy {WIDE} capacity=40 layout=head dtype=bf16: copy 30 15 sliding=1 dtype=f32 fill=edges; copy 3 39 "
    "sliding=1 "
    "rows=40 fill=bits; copy 17 30 sliding=1 rows=60; alias 2 0 17; copy 130 7 sliding=1; copy 5 35",
)

KEYED = (
    f"keyed {HEADS} page_size=16 pages=9: request x20y; answer 0 {'xyz' * 7}; match x20y{'xyz' * 7}x; propose 0 "
    f"{'yx' * 12}; accept 0 23; finish 0; match x20y{'xyz' * 7}{'yx' * 12}; request x20y{'xyz' * 7}{'yx' * 12}; "
    "request x30 adapter=a; match x31; match x31 adapter=a; request x40 media=p@20; match x41; match x41 "
    "media=p@20; "
    "match x41 media=q@20",
    "keyed kv_heads=2 k_dim=20 v_dim=18 page_size=4 pages=9: "
    + "; ".join(f"request {t}9; finish 0" for t in "xyzw")
    + "; match x9; match y9; request v9; match x9; match y9; match z9; evict 3; match y9; match z9; match w9; "
    "finish 0; request y9; request y8x salt=s; finish 0; evict 2; request w20; match v9",
)

LAYERS = (
    "layers kv_heads=5 k_dim=24 v_dim=20 layers=10 "
    "of=full,window:33,chunk:32,state,sinks:5:20,conv:9,state,chunk:17,window:9,state,share:1,share:2,share:4: "
    "append 3; append 20; append 17; snapshot s; append 3; askrestore s 31; restore s 40; append 1; append 25; "
    "append 1; append 70; snapshot t; append 2; restore t 137; append 9; restore t 135; append 1; free; append "
    "5",
    "layers kv_heads=5 k_dim=24 v_dim=20 layers=8 "
    "of=full,chunk:32,window:60,window:61,full,chunk:64,sinks:5:60,full,share:1,share:2: append 3; append 37; "
    "snapshot s; ask 31; rewind 31; rewind 35; append 4; append 1; askrestore s 31; askrestore s 36; restore s "
    "40; append 1; rewind 32; append 33; rewind 64; append 1",
    "layers kv_heads=2 k_dim=20 v_dim=18 layers=20 "
    f"of={','.join(['window:9', 'full'] * 10)},share:18,share:17,share:19: append 12; append 1; append 3; "
    "snapshot s; append 30; restore s 16; append 1",
)

RAGGED = (
    *(
        f"ragged {HEADS} batch=10 padding={side}: feed 40,1,2,3,4,5,6,7,8,36; feed 1,0,0,2,1,0,3,1,1,9; trim "
        "2,0,1,1,1,2,0,3,1,7; filter 9,0,8,1,7,2,6,3,5; repeat 3; filter 26,0,25,1,3,6,9,12,15,18; feed "
        "1,2,3,4,5,6,7,8,9,0; reorder 9,8,7,6,5,4,3,2,1,0; open B kind=growing batch=1; extract 5 B; B: append "
        "2; B: view; extract 1 B; B: append 1"
        for side in ("left", "right")
    ),
    "ragged kv_heads=2 k_dim=20 v_dim=18 batch=9 padding=left window=17: feed 30,1,2,3,4,16,17,18,19; feed "
    "1,0,0,3,1,0,0,1,2; trim 0,1,2,1,0,3,0,0,0; feed 0,18,20,0,0,1,1,1,0; filter 8,0,7,1,2,5; feed "
    "1,1,1,1,1,1; open B kind=ring batch=1; B: append 17; B: append 1; B: append 1; B: append 1; B: append 1; "
    "B: append 1; B: append 1; B: append 1; B: append 1; join BB; feed 1,0; extract 0 B; B: append 1",
)

BOUNDED = (
    f"bounded {WIDE} batch=2 max_len=70: append 20; {AGAIN.format(back=3, n=17)}; askappend 51; askappend 50; "
    "append 36; askappend 1; rewind 50; pack x; append 7; unpack x; append 20; askappend 1; rewind 17; append "
    "2; view",
)

TOLD = (
    *(*GROWING, *RINGS, *SINKS, *BOUNDED, *PAGES, *STORES),
    *(*BUCKETS, *COPIES, *KEYED, *LAYERS, *RAGGED),
)
"""All lives. Each begins with its kind."""


@cache
def told(kind: str) -> tuple[Trace, ...]:
    """Give the lives of caches of a kind."""
    return tuple(trace_of(text) for text in TOLD if text.partition(" ")[0] == kind)


def trace_of(text: str) -> Trace:
    """Read a life: its kind and fields, then what happens."""
    fields, ops = text.split(": ", 1)
    kind, _, sizes = fields.partition(" ")
    return notation.trace(kind, sizes, ops)
