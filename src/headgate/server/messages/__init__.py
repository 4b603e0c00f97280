"""Messages of topics, for people: read page by page, watched as they come, and written one by one."""
