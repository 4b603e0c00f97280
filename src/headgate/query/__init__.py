"""The query process: a Spark driver of its own, spoken to by Spark Connect."""
