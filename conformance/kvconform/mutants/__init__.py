"""Caches that are wrong on purpose: real bugs planted, and systematic faults; the suite must find every one.

`real` has the bugs of the public catalogue, for each chapter a module and a table (`page.py`, `page.toml`);
`common` those that anybody could write; `systematic` makes the others, by `operators`. `hunt` tries the suite's
traces on one, `hunt_tasks` on many at once, `matrix` holds the results.
"""
