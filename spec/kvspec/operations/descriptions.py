"""What the published schemas say of each operation of a question and of each value of an answer."""

OPERATION: dict[str, str] = {
    "open": "Open another cache, or one of this name afresh. Sizes may be out of range on purpose.",
    "append": "Rows at the positions from the offset on, [batch, kv_heads, n, dim]; on a store behind the length of"
    " every layer, [layers, kv_heads, n, dim], or of one `layer`, [1, kv_heads, n, dim]. Sizes and dtype "
    "may be wrong on purpose. `values` is how many value rows there are, if not n.",
    "view": "Read the view.",
    "ask": "Whether a rewind to `to` would be accepted, as the value `can`; nothing changes.",
    "rewind": "Make `to` the offset; the answer's value `can` is what the cache said of it before.",
    "free": "Return to never written.",
    "scribble": "Overwrite the arrays that were handed in and out on the caller's side; nothing for an engine in "
    "another process to do.",
    "mask": "The mask for the history of the append just before, or of the draft just before on this cache's "
    "layer of a `round`: the intersection of the parts, in position order.",
    "snapshot": "Save the rows from `start` on under a name; the value `snapshot` tells its range and bytes.",
    "restore": "Bring the cache to offset `to` with the rows saved.",
    "split": "Two snapshots of one, which it uses up.",
    "merge": "One snapshot of two, which it uses up.",
    "close": "Return a snapshot's memory.",
    "speculate": "Begin a round over one cache a layer: `layers` names them, `-` a layer that has none. All caches "
    "of the round are observed, each under its letter (`state.B`).",
    "draft": "Append drafts, rows as for append, to this cache's layer of the round; `drafted` is the position "
    "after them.",
    "commit": "Keep the first n drafts on every layer, drop the others, end the round.",
    "abandon": "End the round; every draft is dropped.",
    "copy": "The first n rows of sources [rows, kv_heads, dim], of any dtype, into the slots from `at` on; "
    "sliding: modulo the capacity. `rows` is how many rows the sources have, if not n.",
    "alias": "A copy whose source is the buffer's own n slots from `source` on.",
    "init": "Initialise the store again, with this config.",
    "reset": "Every layer's length to 0.",
    "zero": "Every layer's length to 0, and the rows cleared.",
    "rollback": "Lower every layer that is longer to `to`; with `sequence`, that sequence of the batch.",
    "setlength": "Set the length of one layer.",
    "save": "A host snapshot under a name: the tensors `saved.LAYER`.",
    "load": "The host snapshot of that name back, changed as the other arguments say: so many layers, heads, "
    "elements, value rows, or another dtype; what is missing is zeros.",
    "fingerprint": "The sum over the key row of layer 0, head 0 at a position, as the text that Python's "
    "repr gives.",
    "batch": "Allocate for m sequences; `most` is how many are allowed, if not 32.",
    "scatter": "The store's first n rows into one sequence's place, of one layer or of all.",
    "step": "Append one row to every sequence in every layer, [layers, m, kv_heads, dim].",
    "resetbatch": "Every sequence's length to 0.",
    "freebatch": "Return the batch's memory.",
    "capture": "Capture a step of the batch under a name.",
    "replay": "The captured step on new rows, [layers, m, kv_heads, dim].",
    "attend": "Rows as for append, n of each sequence; then n queries [batch, heads, n, k_dim] in f32 attend "
    "through the mask `through`, in so many `splits`; with `rope`, queries and keys are turned at their positions "
    "first. The answer's tensor `output` is [batch, heads, n, v_dim] in f32. `layer` is one of a store, "
    "`sequence` one of a paged cache. into: the output is to be written where the caller says. What begins with "
    "q_ and out_ are sizes and dtypes of the queries and of that output which are wrong on purpose; with "
    "out_readonly, that output can only be read, where it is on the host.",
    "attendbatch": "A query for each sequence of the batch, [m, heads, 1, k_dim], over what a layer holds of it.",
    "captureattend": "Capture an attend of one row on a store's layer under a name.",
    "replayattend": "The captured attend on new queries and rows.",
    "admit": "A new sequence; the value `sequence` is its number.",
    "fork": "A new sequence that shares the first n rows of another; the value `sequence` is its number.",
    "truncate": "Drop the rows of a sequence from `to` on.",
    "drop": "Give a sequence up.",
    "gather": "The first n rows through a block table, pages parted by commas: the tensors `gathered`.",
    "peek": "A page as it lies in the pool: the tensors `page`.",
    "prefill": "The host's rows become these, [layers, batch, kv_heads, n, dim]; sizes may be wrong on purpose.",
    "bind": "Install handles as a step would that came now; with `refresh`, from the host's rows.",
    "decode": "One step of the graph, on one row and one query of each layer; `past` is the length counted on, "
    "`refresh` has handles installed from the host's rows first. The answer's tensor `output` is [layers, batch, "
    "heads, 1, v_dim] in f32.",
    "block": "A block of n rows and queries of each layer, which commits nothing.",
    "unbind": "Forget the bounds that handles were installed for.",
    "sync": "The device's rows to the host.",
    "cut": "Make `to` the number of past rows.",
    "encode": "Install rows for cross-attention, [layers, batch, kv_heads, n, dim].",
    "cross": "Queries [layers, batch, heads, n, k_dim] over those rows.",
    "rotate": "Key rows turned by RoPE, the first at position `at`, each further one `stride` on; then all of them "
    "`by` so many positions more; of each row the first `dims` elements: the tensor `rotated`. Sizes may be wrong "
    "on purpose: `positions` is how many positions there are, if not n. `halved` says how the rows were made.",
    "plan": "Bytes of rows allocated after an append of n rows, and at most during it, as the value `plan`.",
    "fit": "How many sequences of this config fit into `free` bytes less `reserve`, and whether one does, as the"
    " value `fit`; at most `most`, if not 32.",
}
"""What each operation asks for."""

VALUE: dict[str, str] = {
    "offset": "Tokens appended and not rolled back.",
    "retained": "Rows that can still be read.",
    "buffered": "Rows on the storage axis of the state.",
    "capacity": "Rows allocated.",
    "bytes": "close: bytes the snapshot still holds.",
    "drafted": "draft: the position after the last draft on that layer.",
    "held": "Bytes of rows the cache has allocated.",
    "snapshot": "[start, stop, bytes]; null where nothing was saved.",
    "parent": "[start, stop, bytes]; null where nothing was saved.",
    "child": "[start, stop, bytes]; null where nothing was saved.",
    "plan": "[bytes held after the append, bytes at most during it].",
    "fit": "[the largest batch, 1 if one sequence fits and 0 if not].",
    "lengths": "The length of each layer of a store.",
    "sequences": "The length of each sequence of its batch; null where there is none.",
    "can": "ask, rewind: whether a rewind would be accepted, asked before it was tried.",
    "intact": "scribble, rotate: whether arrays handed in and out still held what they held; left out where none "
    "is shared.",
    "moved": "Whether a buffer of the batch has another address than before.",
    "fingerprint": "The sum, as text.",
    "sequence": "admit, fork: the number of the new sequence.",
    "table": "The pages of a sequence, in order.",
    "references": "In how many tables each page of the pool stands.",
    "free": "How many pages of the pool no sequence has.",
    "past": "Rows of each layer of a bucketed cache.",
    "bound": "The bound that its handles are installed for; null where there is none.",
    "key": "decode, block: the key of the graph that ran, its bound; where the batch is larger than 1, batch << 32 "
    "| bound.",
    "extent": "decode, block: [rows of the graph that took part, rows that it has for them].",
    "meter": "What was counted while the operation itself was done.",
}
"""What each value of an answer is."""
