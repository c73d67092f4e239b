"""Adapters for ONNX's reference evaluator, and the small models that ONNX Runtime runs too."""
