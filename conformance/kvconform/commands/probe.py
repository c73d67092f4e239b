"""`kvconform probe ARCHITECTURE`: writes a checkpoint whose logits say what each query saw."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

from tabulate import tabulate

from kvadapters.probe.checkpoint import Probe
from kvconform.message import tell


def main(options: Namespace) -> int:
    """Write the checkpoint; print what it is and what it cannot show. Raises BadInput."""
    probe = Probe.of(options.architecture, options.layers, options.output, options.adapters, options.match)
    record = probe.write(options.out, options.dtype, options.format)
    if options.json:
        print(json.dumps(record, indent=1))
        return 0
    size = sum(file.stat().st_size for file in Path(options.out).rglob("*") if file.is_file())
    rows = [*record.items(), ("megabytes", f"{size / 1e6:.1f}")]
    told = [(key.replace("_", " "), "; ".join(v) or "nothing" if isinstance(v, list) else v) for key, v in rows]
    print(tabulate(told, tablefmt="plain", disable_numparse=True))
    tell(f"wrote {options.out}; prompts are words t0 to t{probe.layout.ids - 1}; see docs/probe.md to read answers")
    return 0
