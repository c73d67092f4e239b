"""Judges a serving engine by requests, against the chapter SERVE. Histories aim at what the engine declares, then
random ones follow. Each answer is read against the request's own tokens."""
