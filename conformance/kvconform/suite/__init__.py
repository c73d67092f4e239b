"""The suite: pytest tests, a module for each chapter, run on one adapter by the plugin `kvconform.plugin`.

Each test gets the `bench`, judges traces on it, and ends with `bench.verdict()`.
"""
