"""The texts of refusals, shared by the reference and the adapters."""
