"""Laws that relate two traces, one file a chapter."""
