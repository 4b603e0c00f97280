"""Tables kept in shape behind their writer: files packed, snapshots expired, orphans removed, rows erased."""
