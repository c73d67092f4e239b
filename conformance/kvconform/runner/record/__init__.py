"""What a run leaves behind: its record, where that comes from, and the files and lines it is written to."""
