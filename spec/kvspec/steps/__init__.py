"""The chapter STEP: the bookkeeping of engines that serve many, told by a log of their steps.

It has no cache that is operated and no arrays: a log says which rows a scheduler had computed, and where they were
put. So it stands beside the other chapters, with its own reader (`clauses`) and its own words for what queries see
(`view`). `step.md` says what a log holds."""
