"""Desired state: a file says what is to run, a plan lists the steps there, apply takes them."""
