"""Large results lie in memory that is used again once they are gone, and only then."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable

import numpy as np
import pytest

from stepwell.core.shapes import DYNAMIC
from stepwell.runtime.extension import load_extension
from stepwell.runtime.program import Program

Build = Callable[[int], Program]
ROWS = 1 << 18
"""Of four numbers each: four megabytes."""

pytestmark = pytest.mark.skipif(load_extension() is None, reason="no extension")


def _ones(rows: int = ROWS) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    return np.ones((rows, 4), np.float32)


def test_a_large_result_owns_its_memory(add_program: Build) -> None:
    result = add_program(DYNAMIC).call(_ones(), _ones())
    assert result.flags.owndata and result.flags.writeable and result.base is None
    assert result.ctypes.data % 64 == 0


def test_a_large_result_begins_where_other_large_arrays_do_not(add_program: Build) -> None:
    """A loop stalls that writes just ahead of what it reads, but for the page."""
    assert add_program(DYNAMIC).call(_ones(), _ones()).ctypes.data % 4096 == 2048


def test_memory_is_used_again(add_program: Build) -> None:
    add, x = add_program(DYNAMIC).call, _ones()
    places = set[int]()
    for _ in range(8):
        places.add(add(x, x).ctypes.data)
    assert len(places) == 1


def test_what_is_still_wanted_is_left_alone(add_program: Build) -> None:
    add, x = add_program(DYNAMIC).call, _ones()
    kept = [add(x * n, x) for n in range(6)]
    views = [add(x * n, x)[5:7] for n in range(6)]
    for _ in range(6):
        add(x, x)
    assert len({r.ctypes.data for r in kept}) == 6
    for n, (result, view) in enumerate(zip(kept, views, strict=True)):
        assert (result == n + 1).all() and (view == n + 1).all()


def test_a_large_result_is_resized_like_any_array(add_program: Build) -> None:
    result = add_program(DYNAMIC).call(_ones(), _ones())
    result.resize((2 * ROWS, 4), refcheck=False)
    assert (result[:ROWS] == 2).all() and not result[ROWS:].any()
    result.resize((3, 4), refcheck=False)
    assert (result == 2).all()


def test_more_results_than_are_kept(add_program: Build) -> None:
    add, x = add_program(DYNAMIC).call, _ones()
    for _ in range(2):
        results = [add(x, x) for _ in range(40)]
        assert all((r == 2).all() for r in results)


def test_sizes_may_change_from_call_to_call(add_program: Build) -> None:
    add = add_program(DYNAMIC).call
    rng = np.random.default_rng(0)
    for rows in rng.integers(1, 4 * ROWS, 40):
        result = add(_ones(int(rows)), _ones(int(rows)))
        assert result.shape == (rows, 4) and result[0, 0] == result[-1, -1] == 2


def test_many_threads_take_and_give_at_once(add_program: Build) -> None:
    """Results cross threads, and the same few blocks are fought for."""
    add = add_program(DYNAMIC).call
    wrong: list[str] = []
    shared: list[tuple[int, np.ndarray[tuple[int, int], np.dtype[np.float32]]]] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        held: list[tuple[int, np.ndarray[tuple[int, int], np.dtype[np.float32]]]] = []
        for _ in range(60):
            number = int(rng.integers(1000))
            x = np.full((int(rng.integers(ROWS // 4, ROWS // 2)), 4), number, np.float32)
            held.append((number, add(x, x)))
            shared.append((number, add(x, x)))
            if len(shared) > 10:
                held.append(shared.pop(0))
            while len(held) > 3:
                number, result = held.pop(int(rng.integers(len(held))))
                if not (result == 2 * number).all():
                    wrong.append(f"{number} has become {result[0, 0]}")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert all((result == 2 * number).all() for number, result in shared)


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_child_begins_anew(add_program: Build) -> None:
    add, x = add_program(DYNAMIC).call, _ones()
    kept = add(x, x)
    add(x, x)
    if (child := os.fork()) == 0:
        fine = all((add(x, x) == 2).all() for _ in range(4)) and bool((kept == 2).all())
        os._exit(0 if fine else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
