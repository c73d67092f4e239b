"""The reference: exact storage, slot by slot, in numpy, written to be read. Beside it is the list model that
judges it."""
