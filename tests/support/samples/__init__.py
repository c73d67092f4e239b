"""Samples: records of runs and profiles to render, and logs to judge."""
