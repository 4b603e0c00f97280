"""Statements: queries over topics that run for ever and write a topic, exactly once."""
