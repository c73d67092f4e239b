"""The proof that the suite is good: it must find every wrong cache, and accuse no right one.

`systematic` makes wrong caches by `operators`; `kvconform.bugs` has the planted ones. `hunt` tries the suite's
traces on one, `hunt_tasks` on many at once, `matrix` holds the results. `soak` and `correct_variants` are the right
caches; `prove` tries every move in the small."""
