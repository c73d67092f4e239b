"""Drawings of traces, slot by slot, as frames and SVG."""
