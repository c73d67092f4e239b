"""Adapters for ONNX Runtime on a CPU."""
