"""What each operation of a trace does to caches that follow the contract: a module for each chapter.

`DO` maps operations to functions of a session, the cache the operation is for, the operation, the step it makes,
and what was given with it; `LOOK` maps kinds of cache to what is observed of one after every operation.
"""

from __future__ import annotations

from collections.abc import Callable

from kvspec.session.operations import attention, batch, bucket, cache, copy, draft, mem, page, rope, snapshot, store

Do = Callable[..., None]

DO: dict[str, Do] = cache.DO | snapshot.DO | draft.DO | copy.DO | store.DO | batch.DO | mem.DO
DO |= attention.DO | page.DO | bucket.DO | rope.DO
LOOK: dict[str, Callable[..., None]] = {
    "growing": cache.look,
    "ring": cache.look,
    "copy": copy.look,
    "store": store.look,
    "page": page.look,
    "bucket": bucket.look,
}
