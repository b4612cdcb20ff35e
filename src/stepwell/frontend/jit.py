"""`jit`: trace a Python function once for each signature of dtypes and shapes, and compile it."""

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
    static_argnames, static_argnums : arguments that are not data; each value has its own program.
        Values are distinguished by class and bits (``1``, ``1.0`` and ``True`` are three, ``0.0``
        and ``-0.0`` two) and must be hashable; a function, and an object whose class defines no
        ``==``, is known by identity. Omitted arguments with defaults without arrays are static too
    check_bounds : with False, traced indices are not checked: out of range, a read clamps the index
        and a write is dropped
    check_finite : with True the program raises FloatingPointError at the first line that gives a
        NaN or an infinity, as `sw.debug.check_finite` does
    donate_argnames, donate_argnums : arguments whose arrays results may reuse, leaf by leaf: the
        result computed from the leaf, else the first free one of its dtype and shape. The result is
        then the very array passed, updated as by an assignment. An array that is read-only, not
        contiguous or passed twice is left unchanged and the result is new; the logger ``stepwell``
        reports it
    dynamic : "auto" compiles one program for any size when it sees a second size, "always" at the
        first call, for all axes, "never" none
    input_signature : `sw.ShapeDtypeStruct` of each array, in order; their `sw.Dim` are of any size
        from the first call on, and other arrays raise `TypeError`
    threads : the maximum number of threads of its programs; None for the machine's number
    max_traces : the maximum number of traces, by default 64; one more raises `TraceError`. None is
        no limit, and logs no traces: for functions of a library
    options : as in `sw.compile` (``target="opencl"``), also for `trace(...).compile()`

    The logger ``stepwell`` reports each trace but the first in a line: its reason and how to avoid
    it. `cache_info` has these lines; `clear_cache` forgets all programs.

    Any number of threads may call the function, also for the first time: each signature is compiled
    once. A call with traced values inside a traced function is inlined into that function, and its
    own options do not apply.

    raises TraceError : the function needs the numbers of a traced value (a branch on it, `float`)
    raises TypeError, ValueError : an option is unknown or has an invalid value
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
