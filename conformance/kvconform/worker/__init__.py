"""The adapter's process: starting it, speaking the wire, watching its time and memory."""
