"""The engine by HTTP, with the standard library alone."""
