"""Adapters for llama.cpp, through llama-cpp-python."""
