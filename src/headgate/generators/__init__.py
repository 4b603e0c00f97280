"""Generators of made-up data that run in the background, in a process of their own."""
