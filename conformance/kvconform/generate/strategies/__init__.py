"""Where traces come from: one module for each chapter, with its plans for covers and its random traces."""
