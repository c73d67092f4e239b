"""The run of the suite: settings, the adapter under test, its failures, journal, progress."""
