"""Arguments of operations that are texts of a form of their own: what such a text is like."""

from __future__ import annotations

import re

TOKENS = "^(-|([a-z][0-9]{0,4}){1,64})$"
"""Tokens of a request, each a letter, with a number for several in a row: `xyx`, `x64y`; `-` are none."""

MEDIA = "^[a-z][a-z0-9]{0,7}@[0-9]{1,5}(,[a-z][a-z0-9]{0,7}@[0-9]{1,5}){0,7}$"
"""Images and the like that stand behind tokens: `p@2,q@5` is p at position 2, and q at position 5."""

_NUMBER = r"-?[0-9]{1,9}(\.[0-9]{1,17})?"
_LIST = rf"{_NUMBER}(,{_NUMBER}){{0,255}}"
_LENGTH = "-?[0-9]{1,12}"
SCALING = (
    rf"^(none|(linear|ntk):{_NUMBER}|llama3:{_NUMBER}:{_NUMBER}:{_NUMBER}:{_LENGTH}"
    rf"|yarn:{_NUMBER}:{_LENGTH}(:{_NUMBER}:{_NUMBER}(:{_NUMBER})?)?(:exact)?"
    rf"|longrope:{_NUMBER}:{_LENGTH}:{_LIST}:{_LIST}(:{_NUMBER})?)$"
)
"""How a longer context changes the frequencies of RoPE: `kvspec.rope.scaling` reads it."""

SECTIONS = r"^-?[0-9]{1,4},-?[0-9]{1,4},-?[0-9]{1,4}(:interleaved)?$"
"""Which pairs are turned by each position of a row: `kvspec.rope.sections` reads it."""

APART = ("BHPND", "BPNHD", "BPHND", "PNBHD", "PBHND", "BHDPN")
"""Orders of axes that carriers write. In order: heads first, tokens first, pages of heads, pages of tokens that
all sequences share, pages of all sequences, elements before rows."""

TOGETHER = ("KPNBHD", "PKBHND", "PNBHKD")
"""Orders in one buffer: keys before values as a whole, in each page, and in each row."""

ORDERS = (*APART, *TOGETHER)
"""All orders of axes that carriers write."""


def tokens_in(text: str) -> tuple[int, ...]:
    """Read the tokens of an argument such as `x64y`. Each letter is a number, from 0 for a; `-` has no tokens."""
    found = re.findall("([a-z])([0-9]*)", text)
    return tuple(ord(letter) - ord("a") for letter, times in found for _ in range(int(times or 1)))
