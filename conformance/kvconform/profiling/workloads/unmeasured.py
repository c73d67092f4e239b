"""Which operation of a trace is measured by which of a profile, and why others are not."""

from __future__ import annotations

MEASURED: dict[str, tuple[str, ...]] = {
    "append": ("append", "grow", "ring append", "store append", "page append", "fork"),
    "view": ("view", "ring view"),
    "rewind": ("rewind",),
    "snapshot": ("snapshot",),
    "restore": ("restore",),
    "copy": ("copy",),
    "zero": ("zero",),
    "scatter": ("scatter",),
    "step": ("batch step",),
    "replay": ("captured step",),
    "attend": ("attention", "rope attention", "ring attention", "paged attention"),
    "attendbatch": ("batch attention",),
    "replayattend": ("captured attention",),
    "gather": ("gather",),
    "fork": ("fork",),
    "truncate": ("paged attention",),
    "decode": ("bucket decode",),
    "block": ("bucket block",),
    "unbind": ("bucket block",),
    "bind": ("bucket crossing",),
    "sync": ("bucket sync",),
    "encode": ("encode",),
    "cross": ("cross attention",),
    "rotate": ("rotate",),
}
"""By the name in a trace: the operations of a profile that do it while the clock runs."""

_LENGTHS = "it changes lengths alone"
_ANSWERS = "it moves no row: it answers, or prepares"
_ONCE = "it is done once, before what is done for every token"
_DRAFTS = "drafts are appends, beside a ring behind a copy of its window; those that are kept move once"
_HOST = "a copy of all rows between the device and the host, as a view is of a growing cache's"

UNMEASURED: dict[str, str] = {
    **dict.fromkeys(("free", "reset", "setlength", "rollback", "resetbatch", "freebatch"), _LENGTHS),
    **dict.fromkeys(("admit", "drop", "cut"), _LENGTHS),
    **dict.fromkeys(("open", "ask", "plan", "fit", "mask", "close"), _ANSWERS),
    **dict.fromkeys(("init", "batch", "capture", "captureattend"), _ONCE),
    **dict.fromkeys(("speculate", "draft", "commit", "abandon"), _DRAFTS),
    **dict.fromkeys(("save", "load"), _HOST),
    **dict.fromkeys(("split", "merge"), "a copy of the rows saved, as restoring them is"),
    **dict.fromkeys(("fingerprint", "peek", "scribble"), "it is for tests: no engine waits for it"),
    "alias": "a copy, whose rows happen to lie in the buffer",
    "prefill": "it keeps rows on the host; installing them on the device is not asked for in a step",
    "ring rewind": "as of a growing cache",
    "ring snapshot": "a copy of the rows buffered, as of a growing cache's",
    "ring restore": "a copy of the rows saved, as of a growing cache's",
    "store attend": "the launches of attention on a growing cache; captured attention is measured",
}
"""By the name in a trace, or by kind and name where that of one kind alone is not measured: why not."""
