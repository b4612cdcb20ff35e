"""What only tests need is an extra: who lacks it is told how to get it."""

from __future__ import annotations

from importlib.util import find_spec


def need(module: str, what: str) -> None:
    """Raise ImportError, with words, where a package of the extra `testing` is missing.

    >>> need("no_such_module", "random programs")
    Traceback (most recent call last):
    ImportError: random programs need no_such_module: pip install 'stepwell[testing]'
    """
    try:
        found = find_spec(module) is not None
    except ValueError:  # it has no spec, or is said not to be there
        found = False
    if not found:
        message = f"{what} need {module}: pip install 'stepwell[testing]'"
        raise ImportError(message, name=module)
