"""The operations of a trace: their table and their notation."""
