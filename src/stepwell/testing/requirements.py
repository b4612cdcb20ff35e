"""Requirements of tests are an extra: if one is missing, the error says how to install it."""

from __future__ import annotations

from importlib.util import find_spec


def need(module: str, what: str) -> None:
    """Raise ImportError, with instructions, if a package of the extra `testing` is missing.

    >>> need("no_such_module", "random programs")
    Traceback (most recent call last):
    ImportError: random programs need no_such_module: pip install 'stepwell[testing]'
    """
    try:
        found = find_spec(module) is not None
    except ValueError:  # its spec is missing, or blocked
        found = False
    if not found:
        message = f"{what} need {module}: pip install 'stepwell[testing]'"
        raise ImportError(message, name=module)
