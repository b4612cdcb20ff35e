"""Errors of tracing."""


class TraceError(TypeError):
    """An operation needs the numbers of a traced value before the program runs."""

    ends: int | None = None
    """The number of the region that a user's exception ends, if the error stands for one."""
