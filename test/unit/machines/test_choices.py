"""What is chosen on machines that are written down: none of them need be at hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from nestings import has, levels_in

import stepwell as sw
from stepwell.core.machine import Machine, known_machine
from stepwell.testing.machines import kernels_for
from stepwell.tools.main import main
from stepwell.transforms.kernels.schedule.block_sizes import depth_of
from stepwell.transforms.kernels.schedule.on_machines import choices_on

PRODUCT = """
func.func @main(%x: tensor<{m}x{k}xf32>, %w: tensor<{k}x{n}xf32>) -> tensor<{m}x{n}xf32> {{
  %y = nd.matmul %x, %w : (tensor<{m}x{k}xf32>, tensor<{k}x{n}xf32>) -> tensor<{m}x{n}xf32>
  func.return %y : tensor<{m}x{n}xf32>
}}
"""


def product(m: int, k: int, n: int) -> str:
    return PRODUCT.format(m=m, k=k, n=n)


@pytest.mark.parametrize(
    ("machine", "marks", "depths"),
    [
        ("zen4", (True, True), (344, 384)),
        ("sapphire-rapids", (False, False), (512, 768)),
        ("skylake-x", (True, True), (344, 384)),
        ("haswell", (False, False), (344, 384)),  # 23 cycles a line from memory, 6 a step
        ("neoverse", (True, True), (512, 768)),
    ],
)
def test_large_products(machine: str, marks: tuple[bool, bool], depths: tuple[int, int]) -> None:
    """Depth, prefetching and packing ahead follow caches and ports, as two of these measured."""
    sizes = (1024, 1024, 1024), (512, 3072, 768)
    for (m, k, n), depth, marked in zip(sizes, depths, marks, strict=True):
        text = kernels_for(product(m, k, n), f"{machine},threads=2")
        assert any(each.blocks[-1:] == (depth,) for each in levels_in(text))
        assert has(text, "pack_first") == marked
        assert has(text, "prefetch") or not marked  # panels are prefetched without packing too


def test_few_rows_that_wait_for_a_slow_cache() -> None:
    """4 MB come from Zen 4's last cache as quickly as 8 rows use them, from that of others not."""
    assert not has(kernels_for(product(8, 1001, 1024), "zen4,threads=2"), "strip")
    for machine in ("sapphire-rapids", "skylake-x"):
        assert has(kernels_for(product(8, 1001, 1024), f"{machine},threads=2"), "strip")


def test_few_rows_by_a_matrix_beyond_a_slow_cache() -> None:
    """9 MB come from Zen 4's last cache as quickly as 4 rows use them; others read long runs."""
    for machine, strips in (("zen4", False), ("sapphire-rapids", True)):
        text = kernels_for(product(4, 768, 3072), f"{machine},threads=2")
        assert has(text, "strip") == strips == has(text, "prefetch")
    near = kernels_for(product(4, 1200, 1000), "sapphire-rapids,threads=2")
    assert not has(near, "strip")


def test_a_vector_by_matrices_from_memory() -> None:
    """Each of 48 parts of 16 rows is read from end to end; one matrix stays in a cache."""
    x, w = np.zeros(768, np.float32), np.zeros((768, 768), np.float32)
    for many in (1, 40):
        traced = sw.jit(lambda x, *all: [x @ w for w in all]).trace(x, *[w] * many)
        found = kernels_for(traced, "sapphire-rapids,threads=2")
        assert has(found, "parts") == ("into 48 {prefetch}" in found) == (many > 1)


@pytest.mark.parametrize(("columns", "rows"), [(2000, 1), (5000, 8), (20000, 8)])
def test_a_matrix_from_memory_by_a_vector(columns: int, rows: int) -> None:
    """Rows come one after another while the vector stays in the L1 cache (Zen 4 measured)."""
    a, x = (np.zeros(shape, np.float32) for shape in ((40_000_000 // columns, columns), columns))
    text = kernels_for(sw.jit(lambda a, x: a @ x).trace(a, x), "zen4,threads=2")
    assert ("parallel d0 by 8" in text) == (rows == 8)


def test_depths() -> None:
    found = {
        name: depth_of(known_machine(name))
        for name in ("haswell", "neoverse", "sapphire-rapids", "skylake-x", "zen3", "zen4")
    }
    assert found == {
        "haswell": 384,
        "neoverse": 768,
        "sapphire-rapids": 768,
        "skylake-x": 384,
        "zen3": 384,
        "zen4": 384,
    }


def test_one_description_gives_one_text(monkeypatch: pytest.MonkeyPatch) -> None:
    text = product(130, 200, 190)
    there = kernels_for(text, "haswell")
    for variable, value in [("STEPWELL_THREADS", "3"), ("STEPWELL_MACHINE", "l1=4096")]:
        monkeypatch.setenv(variable, value)
        assert kernels_for(text, "haswell") == there


@pytest.mark.parametrize("machine", ["sapphire-rapids,threads=2", "neoverse,threads=3"])
def test_what_is_chosen_there_is_right_here(machine: str) -> None:
    random = np.random.default_rng(3)
    x, w = (random.standard_normal(s).astype(np.float32) for s in [(131, 1601), (1601, 530)])
    found = sw.compile(product(131, 1601, 530), machine=machine)(x, w)
    np.testing.assert_allclose(found, x.astype(float) @ w, 2e-4, 2e-4)


def test_choices_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    said = {name: value for name, value, _ in choices_on(known_machine("sapphire-rapids"))}
    assert (said["tile"], said["depth"], said["prefetches"]) == ("6 x 4 x 16", "768", "no")
    assert {n: v for n, v, _ in choices_on(known_machine("zen4"))}["prefetches"] == "yes"
    assert next(choices_on(Machine(l2=0)))[1] == "none"
    assert main(["machine", "haswell"]) == 0
    assert "6 x 2 x 8" in capsys.readouterr().out


def test_explain_says_why(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "m.mlir"
    file.write_text(product(1024, 1024, 1024))
    assert main(["explain", str(file), "--machine", "sapphire-rapids,threads=2"]) == 0
    said = capsys.readouterr().out
    assert "nothing is packed while a tile computes, nor asked for before" in said
    assert "predicted  5" in said  # ms, of the Xeon's peak, whatever machine this is


def test_many_threads_have_blocks_enough_and_the_same_result() -> None:
    text = product(700, 1000, 1300)
    assert "parallel d0 by 354, parallel d1 by 32" in kernels_for(text, "zen4,threads=2")
    assert "parallel d0 by 234, parallel d1 by 32" in kernels_for(text, "zen4,threads=64")
    random = np.random.default_rng(4)
    x, w = (random.standard_normal(s).astype(np.float32) for s in [(700, 1000), (1000, 1300)])
    few, many = (sw.compile(text, machine=f"zen4,threads={threads}")(x, w) for threads in (1, 64))
    assert few.tobytes() == many.tobytes()


def tile_and_lanes(text: str) -> tuple[tuple[int, int], int]:
    """Return the register tile of the only product, and the lanes of its vectors."""
    found = next(each for each in levels_in(text) if each.tile != (1, 1))
    return found.tile, found.lanes[0].width


@pytest.mark.parametrize(
    ("machine", "tile", "lanes"), [("zen5", (14, 1), 16), ("zen4", (12, 2), 8)]
)
def test_few_columns_fill_a_padded_vector_where_one_pass_computes_it(
    machine: str, tile: tuple[int, int], lanes: int
) -> None:
    text = kernels_for(product(576, 12544, 14), f"{machine},threads=1")
    assert tile_and_lanes(text) == (tile, lanes)


@pytest.mark.parametrize(("columns", "vectors"), [(31, 2), (47, 3), (32, 2), (16, 1)])
def test_a_tile_has_all_of_few_columns(columns: int, vectors: int) -> None:
    """A last vector that overlaps its neighbour counts as a whole one."""
    text = kernels_for(product(82, 3922, columns), "zen4,threads=1")
    assert tile_and_lanes(text)[0][1] == vectors


def test_latencies_that_instructions_in_flight_hide() -> None:
    """From Zen 5's last cache rows need no prefetching, from that of others they do."""
    assert not has(kernels_for(product(3, 1000, 1000), "zen5,threads=1"), "prefetch")
    assert not has(kernels_for(product(8, 768, 3072), "zen5,threads=1"), "prefetch")
    assert has(kernels_for(product(8, 768, 3072), "zen4,threads=1"), "prefetch")


@pytest.mark.parametrize(("machine", "columns"), [("zen5", 128), ("zen4", 32)])
def test_runs_of_memory_that_a_single_row_reads(machine: str, columns: int) -> None:
    text = kernels_for(product(1, 4096, 4096), f"{machine},threads=1")
    (found,) = levels_in(text)
    assert found.tile[1] * found.lanes[0].width == columns


def test_last_caches_that_are_quick_enough_to_block_for() -> None:
    found = {name: known_machine(name).last_cache >> 20 for name in ("zen5", "zen4", "skylake-x")}
    assert found == {"zen5": 32, "zen4": 32, "skylake-x": 1}


def test_the_last_panel_is_packed_in_vectors() -> None:
    """Of 510 columns the last 14 are read with two before them, not one by one."""
    compiled = sw.compile(product(800, 1000, 510), machine="zen4,threads=1")
    text = compiled.text("loops")
    assert "memref.load %x" in text
    assert "memref.load %w" not in text
    x, w = (np.random.default_rng(5).integers(-9, 9, s) for s in [(800, 1000), (1000, 510)])
    assert (compiled(x.astype(np.float32), w.astype(np.float32)) == x @ w).all()
