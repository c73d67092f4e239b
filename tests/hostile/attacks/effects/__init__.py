"""What an attack does: rows, heads, sequences, positions, lengths, scales and order go wrong, or refusals do."""
