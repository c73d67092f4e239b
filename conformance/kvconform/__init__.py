"""The suite: finds traces, replays them on oracle and adapter, judges, shrinks, records."""

SUITE_VERSION = "0.1"
"""Version of the suite: what it draws and how it judges."""
