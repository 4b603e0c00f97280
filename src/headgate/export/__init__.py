"""Scheduled exports: a query over tables of the lake, its rows as a file, and a mail when it is there."""
