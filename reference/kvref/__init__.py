"""The reference: exact storage, slot by slot, in numpy, written to be read; and the list model that judges it."""
