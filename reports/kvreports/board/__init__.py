"""The board: released engines side by side, their verdicts and known deviations."""
