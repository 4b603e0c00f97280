"""The shapes of the control API's answers, for its description: `**answers(Shape)` belongs to a route.

Nothing is checked or left out by them when a request is answered: tests hold real answers against them.
"""

from headgate.server.answers.shape import Shape, answers

__all__ = ["Shape", "answers"]
