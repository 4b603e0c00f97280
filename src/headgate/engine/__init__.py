"""The engine process: reconciles the tables that run with the tables that are wanted."""
