"""Arguments that a function assigns to are worked on in the caller's memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stepwell as sw


def copies(function: Any, *args: Any) -> list[str]:
    """Return the copies of a program, those on entry that a call in place skips left out."""
    text = function.trace(*args).lower("buffers").text
    lines = [line.strip() for line in text.splitlines() if "memref.copy" in line]
    entry = [line for line in lines if line.startswith("memref.copy %A,")]
    return [line for line in lines if line not in entry[:1]]


def row(A: Any, v: Any) -> None:
    A[2] = v


def rows_in_a_loop(A: Any, v: Any) -> None:
    for i in range(A.shape[0]):
        A[i] = v + A[i]


def whole(A: Any, v: Any) -> None:
    A[:] = A * v + 1


def reversed_rows(A: Any, v: Any) -> None:
    A[:] = A[::-1] + v


def shifted(A: Any, v: Any) -> None:
    A[1:] = A[:-1] + v


def masked(A: Any, v: Any) -> None:
    A[v < A] = 0


def gathered(A: Any, v: Any) -> None:
    A[[0, 3]] = A[[3, 0]] + v


def sums_after(A: Any, v: Any) -> Any:
    A[0] = v
    return A.sum(axis=0), A


def sums_before(A: Any, v: Any) -> Any:
    total = A.sum(axis=0)
    A[0] = total + v
    return total


def old_one(A: Any, v: Any) -> Any:
    old = A.copy()
    A += v  # pyright: ignore[reportConstantRedefinition]
    return old, A[1]


def in_a_branch(A: Any, v: Any) -> None:
    if A[0, 0] > v[0]:
        A[1] = v
    else:
        A[2] = A[0]


def back_as_it_was(A: Any, v: Any) -> None:
    kept = A.copy()
    A[0] = v
    A[:] = kept


FUNCTIONS = [
    row,
    rows_in_a_loop,
    whole,
    reversed_rows,
    shifted,
    masked,
    gathered,
    sums_after,
    sums_before,
    old_one,
    in_a_branch,
    back_as_it_was,
]


def laid_out(how: str, array: Any) -> Any:
    """Return the array's numbers in memory that is not laid out as programs want it."""
    n, m = array.shape
    if how == "turned":
        return np.array(array.T, order="C").T
    if how == "every second":
        room = np.zeros((2 * n, 3 * m), array.dtype)[::2, ::3]
    elif how == "backwards":
        room = np.zeros_like(array)[::-1, ::-1]
    elif how == "not aligned":
        room = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(n, m)
    else:
        room = np.zeros((n, m), array.dtype.newbyteorder() if how == "swapped" else array.dtype)
    room[...] = array
    return room


@pytest.mark.parametrize(
    "how", ["plain", "turned", "every second", "backwards", "not aligned", "swapped"]
)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_as_numpy(function: Callable[..., Any], how: str) -> None:
    rng = np.random.default_rng(3)
    jitted = sw.jit(function)
    for number in range(3):
        given, v = laid_out(how, rng.standard_normal((5, 7))), rng.standard_normal(7)
        wanted, w = given.copy(), v.copy()
        expected = function(wanted, w)
        found = jitted(given, v)
        np.testing.assert_allclose(given, wanted, err_msg=f"{how}, call {number}")
        np.testing.assert_array_equal(v, w)
        if expected is None:
            assert found is None
            continue
        pairs = zip(
            found if isinstance(found, tuple) else (found,),
            expected if isinstance(expected, tuple) else (expected,),
            strict=True,
        )
        for got, want in pairs:
            np.testing.assert_allclose(got, want)
            assert (got is given) == (want is wanted)


@pytest.mark.parametrize("function", [row, rows_in_a_loop, whole, in_a_branch, sums_before])
def test_nothing_is_copied_and_no_buffer_made(function: Callable[..., Any]) -> None:
    A, v = np.ones((50, 70)), np.ones(70)
    jitted = sw.jit(function)
    whole_ones = [c for c in copies(jitted, A, v) if "50x70" in c.partition(" to ")[2]]
    assert not [c for c in whole_ones if "strided" not in c], whole_ones
    text = jitted.trace(A, v).lower("buffers").text
    assert not [
        line for line in text.splitlines() if "memref.view %arena" in line and "50x70" in line
    ]


def test_the_callers_memory_is_worked_in() -> None:
    """A program's result for an argument that it updates is that very array."""
    A, v = np.zeros((64, 64)), np.arange(64.0)
    program = sw.jit(row).trace(A, v).compile()
    assert program.signature.into == ((0, 0),)
    address = A.ctypes.data
    (found,) = program.update(A, v)
    assert found is A and A.ctypes.data == address
    np.testing.assert_array_equal(A[2], v)
    fresh = program(A, v * 2)  # called as any program it changes nothing
    np.testing.assert_array_equal(A[2], v)
    np.testing.assert_array_equal(fresh[2], v * 2)
    program(A, v * 3, out=A)
    np.testing.assert_array_equal(A[2], v * 3)


def exchanged(A: Any, B: Any) -> None:
    kept = A.copy()
    A[:] = B
    B[:] = kept


def fed(A: Any, B: Any) -> None:
    A[:] = A + B
    B[:] = A * 2


def crossed(A: Any, B: Any) -> None:
    new = A.T + B
    B[:] = B.T - A
    A[:] = new


@pytest.mark.parametrize("function", [exchanged, fed, crossed])
def test_two_arguments(function: Callable[..., Any]) -> None:
    jitted, rng = sw.jit(function), np.random.default_rng(5)
    for _ in range(3):
        A, B = rng.standard_normal((2, 6, 6))
        C, D = A.copy(), B.copy()
        jitted(A, B)
        function(C, D)
        np.testing.assert_allclose(A, C)
        np.testing.assert_allclose(B, D)
    for how in ("same", "same, turned"):  # one array for both
        A = rng.standard_normal((6, 6))  # pyright: ignore[reportConstantRedefinition]
        A, C = (A, A.copy()) if how == "same" else (A.T, A.T.copy())  # pyright: ignore[reportConstantRedefinition]
        if function is not crossed:  # in NumPy too the order of the elements would matter
            jitted(A, A)
            function(C, C)
            np.testing.assert_allclose(A, C)


def test_memory_in_common() -> None:
    jitted = sw.jit(fed)
    whole = np.arange(48.0).reshape(2, 24)
    halves = whole[0].reshape(4, 6), whole[1].reshape(4, 6)
    wanted = whole.copy()
    for _ in range(2):
        jitted(*halves)
        fed(wanted[0].reshape(4, 6), wanted[1].reshape(4, 6))
        np.testing.assert_allclose(whole, wanted)
    odd, even = np.arange(48.0).reshape(24, 2).T  # side by side, element by element
    wanted = odd.copy(), even.copy()
    jitted(odd.reshape(4, 6), even.reshape(4, 6))
    fed(*(w.reshape(4, 6) for w in wanted))
    np.testing.assert_allclose((odd, even), wanted)


def moved(a: Any, b: Any) -> Any:
    for i in range(a.shape[0]):
        a[i] = b[i] + 1
    return a, b.sum(), b


PARTS: list[tuple[Any, Callable[[Any], tuple[Any, Any]]]] = [
    (np.arange(6.0), lambda x: (x[1:], x[:-1])),
    (np.arange(30.0), lambda x: (x[:24].reshape(4, 6), x[6:].reshape(4, 6))),
    (np.arange(48, dtype=np.float32).reshape(6, 8), lambda x: (x[1:4, 1:5], x[2:5, :4])),
    (np.arange(48).reshape(6, 8), lambda x: (x.T[1:4], x[2:5, ::-1][:, :6])),
    (np.arange(48).reshape(6, 8), lambda x: (x[::-2], x[:3])),
    (np.arange(24).reshape(2, 3, 4), lambda x: (x[0][:2], x[:, 1])),
    (np.arange(24).reshape(2, 3, 4), lambda x: (x[:1], x)),
    (np.arange(24).reshape(2, 3, 4), lambda x: (x[1:], x)),
]


@pytest.mark.parametrize(("whole", "parts"), PARTS)
def test_arguments_that_overlap_see_what_is_written_to_each_other(
    whole: Any, parts: Callable[[Any], tuple[Any, Any]]
) -> None:
    jitted, wanted = sw.jit(moved), whole.copy()
    for _ in range(2):
        given = parts(whole)
        got, want = jitted(*given), moved(*parts(wanted))
        np.testing.assert_array_equal(whole, wanted)
        assert got[0] is given[0]
        assert got[2] is given[1]
        assert got[1] == want[1]


def test_results_of_overlaps_are_those_of_the_program_that_ran() -> None:
    settings = {"second": False}

    @sw.jit
    def chosen(a: Any, b: Any) -> Any:
        a += 1
        return (b, a.sum()) if settings["second"] else a

    whole = np.zeros(6)
    a, b = whole[1:], whole[:-1]
    assert chosen(a, b) is a
    settings["second"] = True
    assert chosen(a, b)[0] is b
    settings["second"] = False
    assert chosen(a, b) is a


def test_overlaps_that_are_no_slices_of_one_array_are_refused() -> None:
    whole = np.arange(100.0)
    for b in (whole[5:95].reshape(9, 10), whole.view(np.float32)[:90].reshape(9, 10)):
        with pytest.raises(ValueError, match="'a' and 'b' lie partly in the same memory"):
            sw.jit(moved)(whole[:90].reshape(9, 10), b)
    np.testing.assert_array_equal(whole, np.arange(100.0))


def test_read_only_arrays_raise_before_anything_is_changed() -> None:
    jitted = sw.jit(exchanged)
    A, B = np.ones((4, 4)), np.zeros((4, 4))
    jitted(A, B)
    B.flags.writeable = False
    with pytest.raises(ValueError, match="assignment destination is read-only"):
        jitted(A, B)
    assert not A.any() and B.all()


def test_sizes_of_nothing_and_of_one() -> None:
    jitted = sw.jit(whole)
    for shape in ((0, 3), (3, 0), (1, 1), (1, 3)):
        A, v = np.ones(shape), np.full(shape[1], 2.0)
        for _ in range(2):
            jitted(A, v)
        np.testing.assert_array_equal(A, np.full(shape, 7.0))


def test_a_default_is_assigned_to() -> None:
    table = np.zeros(3)

    @sw.jit
    def count(x: Any, seen: Any = table) -> Any:
        seen += x
        return seen

    for n in range(1, 4):
        assert count(np.ones(3)) is table
        np.testing.assert_array_equal(table, np.full(3, n))
