"""Judges a serving engine by requests, by the chapter SERVE: histories that aim at what it declares, then random
ones; each answer is read against the request's own tokens."""
