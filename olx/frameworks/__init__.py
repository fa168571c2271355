"""Frameworks: families of algorithms, each given by a mirror map, a loss or a schedule."""
