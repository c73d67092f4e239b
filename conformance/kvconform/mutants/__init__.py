"""Caches that are wrong on purpose: real bugs planted, and systematic faults; the suite must find every one.

`catalogue` lists the real bugs, which stand in a module for each chapter (`draft`, `page`, ...); `systematic` makes
the others, by `operators`. `hunt` tries the suite's traces on one, `crowd` on many at once, `matrix` is what came
of it.
"""
