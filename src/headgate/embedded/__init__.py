"""The parts that run when no URL replaces them, and the supervisor that runs them."""
