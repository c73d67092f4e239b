"""Laws that relate two traces, one file a chapter; each law stands in the chapter that states it."""
