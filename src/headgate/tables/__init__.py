"""Topics become tables: position, batch, files, commit."""
