"""Tables kept in shape behind their writer: packed, expired, cleaned, and erased from when somebody must be."""
