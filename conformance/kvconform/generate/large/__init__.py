"""Large traces: one for each boundary that engines have of each size that they depend on."""
