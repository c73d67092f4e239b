"""The commands of `kvconform`: one module each, whose `main(options)` returns the exit status.

`options` declares what each command takes. The parser of the command line needs only these declarations. The
module of a command imports much, so it is loaded only when the command is given.
"""
