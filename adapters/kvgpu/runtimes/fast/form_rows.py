"""Rows in a form for fast attention on a CPU: which forms the kernel decodes, and the macros that describe them."""

from __future__ import annotations

import numpy as np

from kvgpu.runtimes.fast.attention import Geometry
from kvspec.forms import FLOATS, Form, parsed
from kvspec.geometry import DTYPES, Config, forms

WORTHS = {"int8": ("of_int8", 1), "q8_0": ("of_int8", 1), "e4m3": ("of_e4m3", 256), "e5m2": ("of_e5m2", 1)}
"""The codes that it decodes, with the function of `kernels/fast/form_rows.cl` for each, and its unit."""


def readable(config: Config) -> bool:
    """Tell whether it decodes the rows of a cache that keeps them in a form."""
    return all(form.codes in WORTHS and not form.channels for form in forms(config) or ())


def macros(geometry: Geometry) -> dict[str, str | int]:
    """Give the macros that say what keys and values are; none for plain rows."""
    if not geometry.form:
        return {}
    dtype, (keys, values) = geometry.dtype, parsed(geometry.form)
    return _macros("K", keys, dtype, geometry.k_dim) | _macros("V", values, dtype, geometry.v_dim)


def exact_in(dtype: str, form: Form) -> bool:
    """Tell whether every code times its scale is a number of the dtype: those of 8 bits, by given powers of 2."""
    if not form.given or form.codes not in FLOATS:
        return False
    codes = np.arange(256, dtype=np.uint8).view(form.of.dtype).astype(np.float32)
    with np.errstate(all="ignore"):
        products = np.array(form.given, np.float32)[:, None] * codes[np.isfinite(codes)]
        rounded = products.astype(DTYPES[dtype]).astype(np.float32)
    return bool((rounded == products).all())


def _macros(part: str, form: Form, dtype: str, dim: int) -> dict[str, str | int]:
    (worth, unit), given = WORTHS[form.codes], ", ".join(f"{scale.hex()}f" for scale in form.given or (1.0,))
    said: dict[str, str | int] = {"WORTH": worth, "UNIT": f"{unit}.0f", "GROUP": form.group or dim, "GIVEN": given}
    said |= {"ROW": form.row_bytes(dim), "CODES": form.code_bytes(dim), "MANY": len(form.given)}
    said |= {"HALF": int(form.of.scale.itemsize == 2), "EXACT": int(exact_in(dtype, form))}
    return {f"{part}_{name}": means for name, means in said.items()}
