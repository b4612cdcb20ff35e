"""What goes wrong while a function is traced."""


class TraceError(TypeError):
    """What was asked of a traced value cannot be known before the program runs."""
