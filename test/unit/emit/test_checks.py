"""Checks of sizes in C find what Python finds, whatever the numbers."""

from __future__ import annotations

import ctypes
from pathlib import Path
from random import Random

from stepwell.core.checks import ARITY, Check, holds
from stepwell.core.host_schedule import Tree
from stepwell.lowering.emit.checks import checks_text
from stepwell.runtime.toolchain import find_compiler

TREES = 400
NUMBERS = (0, 1, -1, 2, 3, 7, -5, 64, 1000, 1 << 31, 1 << 62, (1 << 63) - 1, -(1 << 63), 1 << 63)


def tree(random: Random, depth: int) -> Tree:
    """Return a tree over d0 and d1."""
    if not depth or random.random() < 0.2:
        return random.choice(["d0", "d1", random.choice(NUMBERS)])
    operator = random.choice(list(ARITY))
    if operator == "wrap":
        return [operator, tree(random, depth - 1), random.choice([1, 8, 32, 64])]
    return [operator, *(tree(random, depth - 1) for _ in range(ARITY[operator]))]


def test_c_finds_what_python_finds(tmp_path: Path) -> None:
    random = Random(1)
    trees = [tree(random, 3) for _ in range(TREES)]
    functions = [checks_text(f"f{k}", [Check(t, ("",))], "") for k, t in enumerate(trees)]
    source = tmp_path / "checks.c"
    source.write_text("#include <stdint.h>\n" + "\n".join(functions))
    find_compiler().build_library(source, tmp_path / "checks.so", [])
    library = ctypes.CDLL(str(tmp_path / "checks.so"))
    for number, each in enumerate(trees):
        for _ in range(12):
            d0, d1 = (random.choice(NUMBERS[:-1]) for _ in range(2))
            want = holds(each, {"d0": d0, "d1": d1})
            failed = library[f"f{number}_checks"]((ctypes.c_int64 * 2)(d0, d1))
            assert failed == (not want), (each, d0, d1)
