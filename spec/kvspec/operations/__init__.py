"""The operations of a trace: their table, arguments, kinds, notation and descriptions."""
