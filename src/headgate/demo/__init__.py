"""`headgate demo`: a world set up, filled, and held against what its seed says."""

from headgate.demo.tour import Demo, run_demo

__all__ = ["Demo", "run_demo"]
