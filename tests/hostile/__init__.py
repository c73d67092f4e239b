"""Hostile cases: adapters, processes, environments, signals and files that mean harm, or do it."""
