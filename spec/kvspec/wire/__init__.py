"""The wire protocol: messages and their schemas."""
