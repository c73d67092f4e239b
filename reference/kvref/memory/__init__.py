"""What holds rows and counts what is allocated and moved."""
