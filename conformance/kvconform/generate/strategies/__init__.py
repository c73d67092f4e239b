"""Where traces come from, a module for each chapter: its plans for covers, its draws for exploration."""
