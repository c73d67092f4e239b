"""Where traces come from, a module for each profile: its plans for covers, its draws for exploration."""
