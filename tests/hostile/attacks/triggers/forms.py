"""By the form of rows, at sizes, and after a rewind that was refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hostile.attacks.triggers.sizes import measured
from hostile.attacks.triggers.trigger import Trigger
from hostile.attacks.wrapper import Where

FORMS: dict[str, Callable[[str], bool]] = {
    "codes of 4 bits": lambda form: "int4" in form or "q4_0" in form,
    "codes that are floats": lambda form: form.startswith("e"),
    "scales that are given": lambda form: "/t" in form or "/h" in form,
    "a scale for a row": lambda form: "/1" in form,
    "blocks of 32": lambda form: form.startswith("q"),
    "a form of keys and one of values": lambda form: "," in form,
    "latent rows": lambda form: "latent" in form,
}
"""What a form may be."""

FORMS_AT: dict[str, tuple[tuple[str, int], ...]] = {
    "codes of 4 bits": (("kv_heads", 9), ("kv_heads", 33), ("batch", 4), ("batch", 17)),
    "codes that are floats": (("kv_heads", 17), ("batch", 9)),
    "scales that are given": (("batch", 4), ("batch", 17)),
    "a scale for a row": (("kv_heads", 9), ("kv_heads", 40), ("batch", 9)),
    "blocks of 32": (("kv_heads", 5), ("kv_heads", 17), ("batch", 4), ("batch", 9)),
    "latent rows": (("batch", 4), ("batch", 17)),
    "a form of keys and one of values": (("kv_heads", 9), ("batch", 9)),
}
"""The sizes from which on forms are attacked: by heads, and by sequences."""

REFUSED = ("codes of 4 bits", "blocks of 32")
"""The forms that are attacked right after a rewind that was refused."""


def in_forms() -> Iterator[Trigger]:
    """Forms of rows; at sizes; and after a rewind that was refused."""
    for name, when in FORMS.items():
        yield Trigger(name, "combination", lambda e, w=when: w(e.config.form or ""), has_forms)
        for size, start in FORMS_AT[name]:
            yield Trigger(
                f"{name}, {size} from {start}",
                "combination",
                lambda e, w=when, s=size, n=start: w(e.config.form or "") and measured(e, s) >= n,
                has_forms,
            )
    for name in REFUSED:
        yield Trigger(
            f"{name}, a rewind was refused",
            "combination",
            lambda e, w=FORMS[name]: w(e.config.form or "") and e.previous == "rewind!",
            has_forms,
        )


def has_forms(where: Where) -> bool:
    """Tell whether attacks on forms are put on a kind."""
    return where.kind in ("growing", "ring")


def form_of(trigger: str) -> str:
    """The form that a trigger is about; empty if it is about none."""
    name = trigger.partition(", ")[0]
    return name if name in FORMS else ""
