"""The commands of `kvconform`, a module each with a `main(options)` that gives the exit status."""
