"""Programs in C as the emitter would write them, for tests of the runtime alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from stepwell.core.signature import Signature, Tensor
from stepwell.runtime.cache import disk_cache
from stepwell.runtime.program import Program, load_program, write_program
from stepwell.runtime.toolchain import find_compiler

HEADER = """
typedef signed int int32_t; typedef signed long int64_t;
struct sw_runtime {
  void (*parallel)(const struct sw_runtime *rt, void (*body)(void *, int64_t, int64_t),
                   void *ctx, int64_t n, int64_t grain);
  int32_t threads;
};
"""
ADD = (
    HEADER
    + """
struct add { const float *x, *y; float *z; };
static void add_body(void *ctx, int64_t begin, int64_t end) {
  struct add *a = ctx;
  for (int64_t i = begin; i < end; i++) a->z[i] = a->x[i] + a->y[i];
}
int32_t stepwell_add(const struct sw_runtime *rt, void *const *buffers, const int64_t *dims, char *arena) {
  struct add a = {buffers[0], buffers[1], buffers[2]};
  rt->parallel(rt, add_body, &a, DIM0 * 4, 1000);
  return 0;
}
"""
)
ADD_STATIC = ADD.replace("DIM0", "3")
ADD_DYNAMIC = ADD.replace("DIM0", "dims[0]") + (
    "void stepwell_add_shapes(const int64_t *dims, int64_t *sizes) { sizes[0] = dims[0]; }\n"
)


AddProgram: TypeAlias = Callable[[int], Program]
"""Given a number of rows (DYNAMIC for `?`), the program z = x + y on float32[rows, 4]."""


def _add(folder: Path, rows: int) -> Program:
    x, y, z = (Tensor(name, "f32", (rows, 4)) for name in "xyz")
    equal = ((0, 1),) if rows < 0 else ()
    source = ADD_DYNAMIC if rows < 0 else ADD_STATIC
    folder.mkdir(exist_ok=True)
    signature = Signature("add", (x, y), (z,), equal=equal)
    write_program(folder, source, "", signature, find_compiler().build_program)
    return load_program(folder, {})


@pytest.fixture
def add_program(tmp_path: Path) -> AddProgram:
    """Build programs that add."""
    return lambda rows: _add(tmp_path / f"add{rows}", rows)


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the cache of the person who runs the tests out of them."""
    root = tmp_path_factory.getbasetemp() / "cache"
    monkeypatch.setenv("STEPWELL_CACHE", str(root))
    disk_cache.cache_clear()
