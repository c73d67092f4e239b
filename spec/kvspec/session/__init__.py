"""A session performs the operations of a trace on an adapter and observes the result."""
