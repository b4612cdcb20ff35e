"""Run a plain function by Python on NumPy's arrays, and compiled: all that one sees is the same."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import stepwell as sw
from stepwell.frontend.pytree import flatten, unflatten


def _copied(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    leaves, tree = flatten(arguments)
    return unflatten(tree, [a.copy() if isinstance(a, np.ndarray) else a for a in leaves])


def _known(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    try:
        return function(*arguments), None
    except Exception as error:
        return None, error


def same_as_numpy(
    function: Callable[..., Any], *arguments: Any, rtol: float = 1e-12, compiled: Any = None
) -> None:
    """Assert that results, dtypes, shapes, what becomes of the arguments and errors are the same.

    Twice, as the second call goes another way than the first.
    compiled : the function, jitted already
    """
    want_arguments = _copied(arguments)
    want, want_error = _known(function, want_arguments)
    compiled = compiled or sw.jit(function)
    for _ in range(2):
        got_arguments = _copied(arguments)
        got, error = _known(compiled, got_arguments)
        if error is not None and want_error is None:
            raise error
        if want_error is not None:
            assert isinstance(error, type(want_error).__mro__[-4:][0]), (error, want_error)
            continue
        wanted, tree = flatten(want)
        found, found_tree = flatten(got)
        assert tree == found_tree
        before, after = flatten(want_arguments)[0], flatten(got_arguments)[0]
        pairs = zip([*wanted, *before], [*found, *after], strict=True)
        for at, (w, g) in enumerate(pairs):
            if isinstance(w, str) or callable(w):
                assert w == g
                continue
            a, b = np.asarray(w), np.asarray(g)
            assert (a.dtype, a.shape) == (b.dtype, b.shape), f"value {at}: {a!r} and {b!r}"
            np.testing.assert_allclose(b, a, rtol=rtol, atol=1e-14, err_msg=f"value {at}")


def as_in_numpy(x: Any, index: Any) -> Any:
    """Return what NumPy says; its first versions only warn where no element is chosen."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        try:
            return x[index]
        except DeprecationWarning as later:
            raise IndexError(str(later)) from None
