"""Managed tables in catalogs that are not Headgate's. Never in the way of the data: see publisher.py."""
