"""The chapter SERVE: what a serving engine owes the requests that it answers, whatever it does for others.

Its traces are histories of requests, not operations on a cache. So it stands beside the other chapters. It has its
own notation (`history`), its own tokens (`texts`) and its own reader (`clauses`)."""
