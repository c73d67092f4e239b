"""Writes the published schemas again."""

from tools.schemas import SCHEMAS, path, text

for name in SCHEMAS:
    path(name).write_text(text(name), encoding="utf-8")
