"""The command line: thin commands over the control API. Output as text or JSON."""
