"""The run of the suite: settings, the adapter under test, tally, journal, record, progress."""
