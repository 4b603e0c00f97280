"""The registry over HTTP: one file for each group of paths."""
