"""The version of the suite: what it draws and how it judges."""

SUITE_VERSION = "0.1"
