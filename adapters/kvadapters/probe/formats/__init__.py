"""The files of a checkpoint: safetensors with a tokenizer, and GGUF as llama.cpp takes it."""
