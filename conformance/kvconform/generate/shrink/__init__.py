"""The shrinker: shortens a failing trace to the least that still fails."""
