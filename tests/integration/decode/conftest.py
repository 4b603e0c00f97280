"""Readers in real Spark jobs, in the session that the tests of tables have too."""
