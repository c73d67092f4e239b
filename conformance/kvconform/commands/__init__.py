"""The commands of `kvconform`: one module each, whose `main(options)` returns the exit status."""
