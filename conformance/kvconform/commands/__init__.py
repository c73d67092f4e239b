"""The commands of `kvconform`: one module each.

`HELP` says what it does, `add_arguments(parser)` adds its arguments, and `main(options)` returns the exit status.
The parser imports all of them, and must be there at once. So functions import what is heavy when they need it.
"""
