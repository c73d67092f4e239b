"""When an attack strikes: sizes, two at once, places, orders, contents, counts, observations, combinations."""
