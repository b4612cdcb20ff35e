"""`jit`: a Python function, traced once for each dtype and shape signature, and compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, overload

from stepwell.frontend.functions import Function


@overload
def jit(function: Callable[..., Any], /, **options: Any) -> Function: ...


@overload
def jit(
    *,
    static_argnames: Any = (),
    static_argnums: Any = (),
    check_bounds: bool = True,
    check_finite: bool = False,
    threads: int | None = None,
    **options: Any,
) -> Callable[..., Function]: ...


def jit(
    function: Callable[..., Any] | None = None,
    /,
    *,
    static_argnames: str | Iterable[str] = (),
    static_argnums: int | Iterable[int] = (),
    check_bounds: bool = True,
    check_finite: bool = False,
    threads: int | None = None,
    **options: Any,
) -> Any:
    """Compile a function of arrays: traced at its first call for each signature, then native.

    function : takes and returns arrays, Python numbers, and tuples, lists and dicts of them,
        and computes with `stepwell.numpy`, `sw.nn` and `sw.lax`
    static_argnames, static_argnums : arguments that are not data; each value is its own program,
        told from others by class and bits (``1``, ``1.0`` and ``True`` are three, ``0.0`` and
        ``-0.0`` two). They are hashable; a function, and an object whose class has no ``==`` of its
        own, is one value whatever becomes of its attributes. Arguments left to defaults without
        arrays are static too
    check_bounds : with False indices that only the run knows are not looked at: out of range, a
        read takes the element at that end of the axis and a write is left out
    check_finite : with True the program raises FloatingPointError at the first line that gives a
        NaN or an infinity, as `sw.debug.check_finite` does
    donate_argnames, donate_argnums : arguments whose arrays results may take over, leaf by leaf:
        each the result made of it, else the first left of its dtype and shape. That is the very
        array passed, which is changed, as if it were assigned to. What is read-only, not contiguous
        or passed twice is left as it is, and the result is new; the logger ``stepwell`` says so
    dynamic : "auto" makes one program for any size when a second size is seen, "always" at the
        first call, for all axes, "never" none
    input_signature : `sw.ShapeDtypeStruct` of each array, in order; their `sw.Dim` have any size
        from the first call on, and other arrays are a `TypeError`
    threads : how many threads its programs run in at most; None for as many as there are
    max_traces : how often it may be traced, 64 times if not told; one time more is a `TraceError`.
        None for any number, and no lines about them: for functions of a library
    options : as in `sw.compile` (``target="opencl"``), for `trace(...).compile()` too

    Each trace but the first is told of in a line of the logger ``stepwell``: what is other than
    before, and how to avoid it; `cache_info` has these lines, `clear_cache` forgets all programs.

    Any number of threads may call it, also for the first time: each signature is compiled once.
    Called in a function that is traced, with traced values, it becomes a part of that one, and its
    own options do not count.

    raises TraceError : the function needs the numbers in a traced value (a branch on it, `float`)
    raises TypeError, ValueError : an option is none that there is
    source : the names are those of `jax.jit`

    >>> import numpy as np, stepwell as sw, stepwell.numpy as snp
    >>> @sw.jit
    ... def norm(x):
    ...     return snp.sqrt(snp.sum(x * x))
    >>> norm(np.array([3.0, 4.0], np.float32))
    array(5., dtype=float32)
    """
    options |= {"check_bounds": check_bounds, "check_finite": check_finite}
    if threads is not None:
        options["threads"] = threads
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
    numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    if function is None:
        return lambda f: Function(f, names, numbers, options)
    return Function(function, names, numbers, options)
