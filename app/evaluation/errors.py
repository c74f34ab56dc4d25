"""What evaluation refuses; the messages name the file and the line."""

from app.errors import AppError


class QuestionSetMalformed(AppError):
    """A question set that cannot be read as one."""


class RunMalformed(AppError):
    """A file that is no earlier run's result."""
