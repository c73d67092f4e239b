"""The board: released engines side by side, what holds of each and what is known to deviate."""
