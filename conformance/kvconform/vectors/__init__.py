"""Frozen vectors: computed once, kept as text, replayed in every run. Changes to them are reviewed as diffs.

`covers` hold every transition of small state graphs, each trace with a digest: they are for judging adapters here.
What is `written` down step by step, with all that goes in and all that must come out, is for an engine's own tests.
These are the worked examples, a covering set of the covers' traces, and the shortest trace of each mutant.

`nox -s vectors` computes all of them again and says what changed; with `-- --write` it writes them.
"""

SOURCES = ("examples", "covering", "mutants")
"""Where vectors come from: worked examples, a covering set of the covers, and the traces that find mutants."""
