"""The state of an NVIDIA GPU, as `nvidia-smi` tells it."""

from __future__ import annotations

import subprocess

ASKED = {
    "clocks.sm": "multiprocessors at",
    "clocks.mem": "memory at",
    "temperature.gpu": "degrees",
    "power.draw": "drawing",
    "clocks_throttle_reasons.active": "slowed down by",
}
"""What is asked for, and the words that say it."""

REASONS = {
    0x1: "nothing to do",
    0x2: "clocks set by an application",
    0x4: "the power limit",
    0x8: "the hardware (heat or power)",
    0x10: "clocks shared with other GPUs",
    0x20: "heat, by software",
    0x40: "heat, by hardware",
    0x80: "the power supply",
    0x100: "clocks of a display",
}
"""Bits of `clocks_throttle_reasons.active`, from NVIDIA's NVML documentation."""

SECONDS = 10


def state(bus: str) -> dict[str, str]:
    """Describe the GPU on this PCI bus: clocks, temperature, power, what slows it down. Empty where `nvidia-smi` is
    missing or fails."""
    query = f"--query-gpu={','.join(ASKED)}", f"--id={bus}", "--format=csv,noheader"
    try:
        done = subprocess.run(("nvidia-smi", *query), capture_output=True, text=True, timeout=SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return {}
    values = [value.strip() for value in done.stdout.strip().split(",")]
    return {"GPU": told(dict(zip(ASKED, values, strict=False)))}


def told(values: dict[str, str]) -> str:
    """Say the values in words. What the GPU does not tell is passed over."""
    found = {name: value for name, value in values.items() if not value.startswith("[")}
    if "clocks_throttle_reasons.active" in found:
        found["clocks_throttle_reasons.active"] = _reasons(int(found["clocks_throttle_reasons.active"], 16))
    return ", ".join(f"{ASKED[name]} {value}" for name, value in found.items())


def _reasons(bits: int) -> str:
    return " and ".join(words for bit, words in REASONS.items() if bits & bit) or "nothing"
