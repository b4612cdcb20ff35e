"""What goes wrong while a function is traced."""


class TraceError(TypeError):
    """What was asked of a traced value cannot be known before the program runs."""

    ends: int | None = None
    """The region that ends with an exception of the user's, by number, where it says so."""
