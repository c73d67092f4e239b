"""Serves a checkpoint: `python -m serving_engine DIR --port 8000`."""

from __future__ import annotations

from argparse import ArgumentParser, BooleanOptionalAction
from contextlib import suppress
from dataclasses import fields
from pathlib import Path

from serving_engine import Settings
from serving_engine import open as load
from serving_engine.checkpoint import read_words
from serving_engine.front.completions import Dialogue
from serving_engine.front.server import serve
from serving_engine.step_log import StepLog


def main() -> None:
    """Read the options, and serve until the process is ended."""
    parser = ArgumentParser(prog="serving_engine", description="Serves a checkpoint by HTTP.")
    parser.add_argument("folder", type=Path, help="the checkpoint's folder")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000, help="0 takes a free one")
    parser.add_argument("--log", type=Path, help="write what the scheduler decides, for kvconform check")
    for field in fields(Settings):
        option = f"--{field.name.replace('_', '-')}"
        if isinstance(field.default, bool):
            parser.add_argument(option, action=BooleanOptionalAction, default=field.default)
        else:
            parser.add_argument(option, type=type(field.default), default=field.default)
    given = vars(parser.parse_args())
    folder, host, port, log = (given.pop(name) for name in ("folder", "host", "port", "log"))
    try:
        engine = load(folder, Settings(**given))
        if log:
            StepLog(engine, log)
        server = serve(
            engine, Dialogue(read_words(folder), folder.resolve().name, engine.model.adapters), host, port
        )
    except (OSError, ValueError, KeyError) as e:
        parser.error(str(e))
    print(f"http://{host}:{server.server_address[1]}/v1", flush=True)
    with suppress(KeyboardInterrupt):
        server.serve_forever()


main()
