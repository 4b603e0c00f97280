"""Spark Connect for notebooks: a driver of its own, that knows nothing of the others."""
