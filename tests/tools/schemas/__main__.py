"""Writes the published schemas again."""

from tools.schemas import SCHEMAS, path, text

if __name__ == "__main__":
    for name in SCHEMAS:
        path(name).write_text(text(name), encoding="utf-8")
