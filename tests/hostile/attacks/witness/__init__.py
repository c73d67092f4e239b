"""Shows that an attack is wrong: a trace on which it answers otherwise than its base. No judge has a part in that.

Traces are drawn from templates of each kind, at the sizes that the trigger names. What no trace shows is no attack.
"""
