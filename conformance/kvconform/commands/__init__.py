"""The commands of `kvconform`: one module each, whose `main(options)` returns the exit status.

`options` has what each takes: the parser of the command line is made at once, and the module of a command, which
imports much, only when it is given.
"""
