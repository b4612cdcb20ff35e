"""Translate error messages of Python and xDSL for the author of the text."""

from __future__ import annotations

from xdsl.utils.exceptions import DiagnosticException

_SPEAKING = (DiagnosticException, ValueError, NotImplementedError)
"""Exceptions whose messages are about the text rather than about Python objects."""


def in_words(error: BaseException) -> str:
    """Return a description of an error, in one line.

    >>> in_words(OverflowError("int too big to convert"))
    'a number is too large for its type'
    >>> in_words(KeyError("axis"))
    "it is not as it must be (KeyError: 'axis')"
    """
    said = sentence(str(error))
    match error:
        case MemoryError():
            return "it needs more memory than there is"
        case RecursionError():
            return "it is nested too deeply"
        case OverflowError():
            return "a number is too large for its type"
        case ValueError() if "integer string conversion" in said:
            return "a number has too many digits"
        case NotImplementedError() if "semi-affine" in said:
            return "an affine map can multiply only by constants"
        case NotImplementedError() if not said:
            return "it is not supported"
        case _ if said and (isinstance(error, _SPEAKING) or type(error) is Exception):
            return said
        case _:
            about = f"{type(error).__name__}: {said}" if said else type(error).__name__
            return f"it is not as it must be ({about})"


def sentence(message: str) -> str:
    """Return xDSL's message in our style: one line, lower case first, no full stop."""
    line = " ".join(message.split()).rstrip(".!")
    first, rest = line[:1], line[1:]
    return line if rest[:1].isupper() else first.lower() + rest
