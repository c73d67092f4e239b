"""What a run found of each clause: tallies of observations, results of checks, verdicts, known deviations."""
