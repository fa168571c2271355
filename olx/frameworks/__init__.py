"""The frameworks: each makes algorithms from a mirror map, a loss or a schedule."""
