"""The cost model: what it says of kernels whose times are known."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from stepwell.analysis.cost import Breakdown, Predictor, predict
from stepwell.analysis.cost.accesses import assumed
from stepwell.analysis.cost.compute import crossing, ports_of
from stepwell.analysis.cost.nest import nests_of, readings_of
from stepwell.analysis.cost.program import Program
from stepwell.analysis.levels import KernelLevels, check_levels, kernel_levels, schedule_of
from stepwell.analysis.levels.building import edited
from stepwell.core.machine import Machine, known_machine
from stepwell.core.source import Source
from stepwell.dialects import kernel
from stepwell.dialects.kernel.levels import Action, Level, Schedule, schedule_from
from stepwell.dialects.parsing import parse_module
from stepwell.driver.lowering import Lowering
from stepwell.driver.registry import registry

ZEN4 = replace(known_machine("zen4"), threads=2, cores=2)
ZEN5 = replace(known_machine("zen5"), threads=2, cores=2)


def lowered(text: str, machine: Machine = ZEN4, stage: str = "kernels") -> Lowering:
    lowered_to = Lowering.of(Source(text, "m", "main", machine))
    lowered_to.to(stage)
    return lowered_to


def predicted(text: str, machine: Machine = ZEN4, stage: str = "kernels") -> list[Breakdown]:
    """Return what is predicted of each kernel of a module, as it is scheduled for a machine."""
    lowered_to = lowered(text, machine, stage)
    program = Program(lowered_to.module)
    functions = [op for op in lowered_to.module.ops if isinstance(op, kernel.FuncOp)]
    return [
        predict(f, schedule_of(f) or Schedule(), machine, program.shapes(f)[0]) for f in functions
    ]


def product(m: int, k: int, n: int) -> str:
    x, w, y = (f"tensor<{a}x{b}xf32>" for a, b in ((m, k), (k, n), (m, n)))
    return (
        f"func.func @main(%x: {x}, %w: {w}) -> {y} {{\n"
        f"  %y = nd.matmul %x, %w : ({x}, {w}) -> {y}\n  func.return %y : {y}\n}}\n"
    )


def unary(op: str, shape: str, result: str = "", attributes: str = "") -> str:
    x, y = f"tensor<{shape}>", f"tensor<{result or shape}>"
    arrow = f"{x} -> {y}" if result else x
    return (
        f"func.func @main(%x: {x}) -> {y} {{\n"
        f"  %y = nd.{op} %x {attributes} : {arrow}\n  func.return %y : {y}\n}}\n"
    )


def only_kernel(text: str, machine: Machine = ZEN4) -> kernel.FuncOp:
    """Return the one kernel of a module, before any schedule."""
    outlined = Lowering.of(Source(text, "m", "main", machine))
    outlined.kernels_outlined()
    (function,) = (f for f in outlined.module.ops if isinstance(f, kernel.FuncOp))
    return function


def scheduled(text: str, levels: str, machine: Machine = ZEN4) -> Breakdown:
    """Return what is predicted of the one kernel of a module under a schedule."""
    function = only_kernel(text, machine)
    return predict(function, schedule_from(levels) if levels else Schedule(), machine)


def test_a_large_product_takes_its_multiply_adds() -> None:
    (found,) = predicted(product(512, 512, 512))
    least = 512**3 / (16 * 2 * 3.7e9)
    assert least < found.seconds < 1.15 * least
    assert found.bound == "multiply-adds" and found.threads == 2 and found.packing > 0


def test_the_schedules_of_the_page_are_ranked() -> None:
    """Three loops, vectors, a register tile, threads: each is quicker than the one before."""
    tile = "for d2, unroll d0, unroll d1 by 16, vector d1 by 16"
    blocks = f"d0 by 192, {{}} d1 by 64, for d2 by 256 {{{{pack 1}}}}, for d0 by 6, {tile}"
    lists = (
        "[for d0, for d1, for d2]",
        "[for d0, for d1 by 16, for d2, vector d1 by 16]",
        f"[for d0 by 6, for d1 by 64, {tile}]",
        f"[parallel {blocks.format('parallel')}]",
    )
    times = [scheduled(product(768, 768, 768), levels).seconds for levels in lists]
    assert times == sorted(times, reverse=True)
    measured = (419e-3, 41.9e-3, 7.95e-3, 4.01e-3)  # docs/schedules.md
    for time, least in zip(times, measured, strict=True):
        assert 0.4 * least < time < 2 * least


def test_memory_bounds_what_is_read_once() -> None:
    (found,) = predicted(unary("reduce_sum", "16777216xf32", "f32", "{axes = [0]}"))
    assert found.bound == "memory"
    assert found.memory == pytest.approx((64 << 20) / (1e6 * 56_000), rel=0.05)


def test_what_lies_in_the_caches_is_nearer() -> None:
    near, far = (predicted(unary("neg", f"{n}xf32"))[0] for n in (1 << 14, 1 << 24))
    assert dict(near.levels)["memory"] == 0 < dict(far.levels)["memory"]
    assert far.seconds > 1000 * near.seconds


def test_threads_share_equal_runs() -> None:
    one = "[parallel d0 {grain 1}, for d1 by 16, vector d1 by 16]"
    text = unary("exp", "3x65536xf32")
    three = replace(ZEN4, threads=3, cores=3)
    assert scheduled(text, one).compute == pytest.approx(2 * scheduled(text, one, three).compute)


@pytest.mark.parametrize("stage", ["kernels", "buffers"])
@pytest.mark.parametrize(
    "text",
    [
        unary("transpose", "256x512xf32", "512x256xf32", "{permutation = [1, 0]}"),
        unary("reduce_max", "64x100xf64", "64xf64", "{axes = [1]}"),
        unary("reduce_sum", "1000x100xf32", "100xf32", "{axes = [0]}"),
        unary("exp", "?xf32"),
        unary("tanh", "7xf64"),
        product(1, 784, 512),
        product(33, 77, 5000),
    ],
)
def test_every_kind_of_kernel_has_a_time(text: str, stage: str) -> None:
    for machine in (ZEN4, known_machine("haswell"), known_machine("neoverse"), Machine()):
        for found in predicted(text, machine, stage):
            assert 1e-9 < found.seconds < 1.0
            assert all(math.isfinite(time) and time >= 0 for _, time in found.parts())


def test_sizes_that_only_the_run_knows_are_said() -> None:
    lowered_to = lowered(unary("exp", "?xf32"))
    (function,) = (f for f in lowered_to.module.ops if isinstance(f, kernel.FuncOp))
    times: list[float] = []
    for sizes in (None, [1 << 20]):
        shapes, assumed = Program(lowered_to.module, sizes).shapes(function)
        times.append(predict(function, schedule_of(function) or Schedule(), ZEN4, shapes).seconds)
        assert bool(assumed) == (sizes is None)
    assert times[1] > 1000 * times[0]


def blocks_of(text: str, machine: str) -> tuple[tuple[int, ...], int]:
    """Return the blocks that are chosen for a product, and among how many threads they are."""
    chosen = Machine().override(machine)
    (function,) = (f for f in lowered(text, chosen).module.ops if isinstance(f, kernel.FuncOp))
    threads = predict(function, schedule_of(function) or Schedule(), chosen).threads
    return kernel_levels(function).blocks, threads


def test_threads_share_blocks_evenly() -> None:
    """Of 15 blocks one thread would take 8; depths stay as they are, for they are in the result."""
    alone, _ = blocks_of(product(284, 133, 958), "zen4,threads=1,cores=1")
    blocks, threads = blocks_of(product(284, 133, 958), "zen4,threads=2,cores=2")
    assert threads == 2 and (alone[1], blocks[1]) == (64, 48) and blocks[2] == alone[2]
    assert blocks_of(product(512, 512, 512), "zen4,threads=2,cores=2")[0] == (258, 64, 256)


def test_shares_count_what_is_left_over() -> None:
    text = unary("exp", "17x65536xf32")
    one, two = (
        scheduled(text, f"[parallel d0{by}, for d1 by 16, vector d1 by 16]", machine).compute
        for by, machine in ((" by 17", replace(ZEN4, threads=1)), (" by 16", ZEN4))
    )
    assert two == pytest.approx(one * 16 / 17, rel=0.01)


def test_a_machine_is_described_whole() -> None:
    for name in ("zen4", "haswell", "neoverse", "h100"):
        machine = known_machine(name)
        described = Machine().override(machine.described)
        assert described == replace(machine, name="", features="")


def test_threads_are_not_woken_for_nothing() -> None:
    """A thread more pays where it saves more than a launch takes; that depends on the machine."""
    texts = [product(n, n, n) for n in (16, 48, 256)]
    quick, slow = "zen4,threads=2,cores=2", "threads=2,cores=2,launch=5000"
    threads = [
        [predicted(text, Machine().override(machine))[0].threads for text in texts]
        for machine in (quick, slow)
    ]
    assert threads == [[1, 2, 2], [1, 1, 2]]


XEON = replace(known_machine("sapphire-rapids"), threads=2, cores=2)
MEASURED_MARKS = {
    (512, 3072, 768): (8.43, 7.96, 7.48, 7.54),
    (64, 3072, 768): (1.56, 1.20, 1.11, 1.07),
}
BLOCK = (
    "parallel d1 by 64, for d2 by 768 {pack 1}, for d0 by 6, for d2, unroll d0, unroll d1 by 16, "
    "vector d1 by 16]"
)
MEASURED_BLOCKS = {
    (512, 3072, 768): f"[parallel d0 by 258, {BLOCK}",
    (64, 3072, 768): f"[parallel d0 by 66, {BLOCK}",
}
"""Milliseconds on a Sapphire Rapids, two threads, in these blocks: with prefetches and packing in the first tile,
with prefetches alone, with packing in the first tile alone, with neither."""


def marked(levels: KernelLevels, packs_first: bool, prefetches: bool) -> Schedule:
    """Return the levels of blocks that pack in the first tile, or before it, and prefetch or not."""
    how, ahead = "first" if packs_first else "", [Action("prefetch")] if prefetches else []

    def change(level: Level) -> Level:
        if level.action("pack") is None:
            return level
        packs = (replace(a, detail=how) for a in level.actions if a.name != "prefetch")
        return replace(level, actions=(*packs, *ahead))

    return edited(levels, change)


@pytest.mark.parametrize("sizes", MEASURED_MARKS)
def test_marks_cost_time_where_the_last_cache_is_far(sizes: tuple[int, int, int]) -> None:
    """What was measured ranks as what is predicted, but for differences of a hundredth."""
    function = only_kernel(product(*sizes), XEON)
    chosen = check_levels(function, schedule_from(MEASURED_BLOCKS[sizes]))
    predictor = Predictor(function, XEON)
    marks = (True, True), (False, True), (True, False), (False, False)
    found = [
        predictor.predict(marked(chosen, packs_first=a, prefetches=b)).seconds for a, b in marks
    ]
    for k, measured in enumerate(MEASURED_MARKS[sizes]):
        for other, beside in enumerate(MEASURED_MARKS[sizes]):
            if measured > 1.02 * beside and {k, other} != {1, 2}:
                assert found[k] > found[other]
        assert abs(found[k] * 1e3 / measured - 1) < 0.15


@pytest.mark.parametrize(
    "sizes", [(1000, 1001, 999), (1024, 1024, 1024), (2048, 2048, 2048), *MEASURED_MARKS]
)
def test_no_product_packs_while_it_computes_there(sizes: tuple[int, int, int]) -> None:
    """Panels that a kernel of its own has packed are prefetched, in few steps."""
    for function in lowered(product(*sizes), XEON).module.ops:
        if isinstance(function, kernel.FuncOp):
            levels = kernel_levels(function)
            assert not (levels.packs and levels.prefetch)
            assert "first" not in levels.packs.values() and levels.prefetch in (0, 2)


def test_a_product_by_its_own_transpose_reads_two_parts_of_a_matrix() -> None:
    """Rows and columns of a tile are elsewhere in it, so it costs what other products cost."""
    x, y = "tensor<1000x1500xf32>", "tensor<1500x1000xf32>"
    text = (
        f"func.func @main(%x: {y}) -> tensor<1000x1000xf32> {{\n"
        f"  %t = nd.transpose %x {{permutation = [1, 0]}} : {y} -> {x}\n"
        f"  %y = nd.matmul %t, %x : ({x}, {y}) -> tensor<1000x1000xf32>\n"
        "  func.return %y : tensor<1000x1000xf32>\n}"
    )
    kernels = [f for f in lowered(text, XEON).module.ops if isinstance(f, kernel.FuncOp)]
    assert kernel_levels(kernels[-1]).blocks


@pytest.mark.parametrize(
    ("sizes", "machine", "expected"),
    [
        ((64, 3072, 768), "sapphire-rapids", True),
        ((35, 688, 2914), "sapphire-rapids", True),
        ((1024, 1024, 1024), "sapphire-rapids", False),
        ((35, 688, 2914), "zen4", False),
    ],
)
def test_tiles_pack_the_next_part_where_packing_waits(
    sizes: tuple[int, int, int], machine: str, expected: bool
) -> None:
    """Few rows compute as long as their operand is read; prefetches hide that on other machines."""
    here = replace(known_machine(machine), threads=1, cores=1)
    for function in lowered(product(*sizes), here).module.ops:
        if isinstance(function, kernel.FuncOp):
            assert ("double_buffered" in kernel_levels(function).packs.values()) is expected


def test_marks_cost_no_time_where_it_is_near() -> None:
    """Zen 4's last cache answers before a tile needs the next line: what is packed is hidden."""
    chosen = lowered(product(64, 3072, 768)).module
    (function,) = (f for f in chosen.ops if isinstance(f, kernel.FuncOp))
    nesting, predictor = kernel_levels(function), Predictor(function, ZEN4)
    assert "first" in nesting.packs.values() and nesting.prefetch
    plain = marked(nesting, packs_first=False, prefetches=False)
    with_marks, without = (predictor.predict(each).seconds for each in (nesting.schedule, plain))
    assert with_marks < without


@pytest.mark.parametrize(
    ("sizes", "is_packed"),
    [
        ((18, 94, 363), False),  # microseconds on Zen 4, one thread: packed 14.6, in place 11.2
        ((45, 640, 141), False),  # 82.9, 71.5
        ((163, 116, 364), False),  # 130.4, 121.1
        ((128, 1024, 1024), True),  # 2371, 2713
        ((100, 2000, 1000), True),  # 3792, 7748
        ((40, 2048, 2048), True),  # 3108, 7935
    ],
)
def test_products_pack_where_that_was_quicker(sizes: tuple[int, int, int], is_packed: bool) -> None:
    functions = [f for f in lowered(product(*sizes)).module.ops if isinstance(f, kernel.FuncOp)]
    assert bool(kernel_levels(functions[-1]).blocks) == is_packed


@pytest.mark.parametrize(
    ("sizes", "is_packed"),
    [
        ((128, 128, 128), True),  # microseconds there, one thread: packed 22.7, in place 30.8
        ((256, 256, 256), True),  # 188, 222
        ((303, 135, 1888), True),  # 792, 944
        ((751, 224, 356), True),  # 735, 856
        ((445, 676, 684), True),  # 1958, 4815
        ((909, 94, 1763), True),  # 1413, 1578, although tiles store lines that lie far apart
    ],
)
def test_loads_of_unaligned_operands_cross_lines(
    sizes: tuple[int, int, int], is_packed: bool
) -> None:
    one = replace(XEON, threads=1, cores=1)
    functions = lowered(product(*sizes), one).module.ops
    (found,) = (f for f in functions if isinstance(f, kernel.FuncOp))
    assert bool(kernel_levels(found).blocks) == is_packed


def test_what_a_program_makes_is_aligned() -> None:
    x, w, y = (f"tensor<{n}xf32>" for n in ("64x64", "64x96", "64x96"))
    v, z = (f"tensor<{n}xf32>" for n in ("96x128", "64x128"))
    text = (
        f"func.func @main(%x: {x}, %w: {w}, %v: {v}) -> {z} {{\n"
        f"  %y = nd.matmul %x, %w : ({x}, {w}) -> {y}\n"
        f"  %z = nd.matmul %y, %v : ({y}, {v}) -> {z}\n  func.return %z : {z}\n}}\n"
    )
    assert [*Program(lowered(text).module).unaligned.values()] == [{0, 1}, {1}]


def test_loads_that_cross_the_end_of_a_line_take_two() -> None:
    """Rows of 61 begin anywhere in a line: 15 of 16 loads of a whole line, 7 of 16 of half one."""
    for machine, wanted in ((ZEN5, 1 + 15 / 16), (ZEN4, 1 + 7 / 16)):
        levels = "[for d0, for d1 by 16], op 0 [for d2, vector d1 by 16]"
        loads: list[float] = []
        for columns in (64, 61):
            text = unary("reduce_sum", f"8x96x{columns}xf32", f"8x{columns}xf32", "{axes = [1]}")
            (function,) = (
                f for f in lowered(text, machine).module.ops if isinstance(f, kernel.FuncOp)
            )
            readings = readings_of(function, machine.fma, assumed)
            (nest,) = nests_of(readings, schedule_from(levels))
            (read, *_) = (access for access in nest.accesses if not access.written)
            loads.append(1 + crossing(nest, read, machine))
        assert loads == pytest.approx([1, wanted], rel=0.01)


@pytest.mark.parametrize("bytes_since", [0, 340 << 20])
def test_prefetches_hide_distant_weights_where_many_are_in_flight(bytes_since: int) -> None:
    """Zen 5, one thread: 2.69 ms with weights from the last cache, 2.74 ms from memory."""
    one = replace(ZEN5, threads=1, cores=1)
    (function,) = (
        f for f in lowered(product(128, 3072, 768), one).module.ops if isinstance(f, kernel.FuncOp)
    )
    schedule = schedule_of(function)
    assert schedule is not None
    found = predict(function, schedule, one, idle={1: bytes_since})
    assert found.seconds == pytest.approx(2.7e-3, rel=0.1)


ROWS_OF_64 = (
    "[parallel d0 by {}, parallel d1 by 48, for d2 by 256 {{pack 1}}, for d0 by {}, for d2, "
    "unroll d0, unroll d1 by 16, vector d1 by 16]"
)


def test_a_last_row_costs_what_it_waits_and_packs() -> None:
    """Zen 5: in blocks of 63 rows the 64th packs all columns once more, 1.25 of the time."""
    one = replace(ZEN5, threads=1, cores=1)
    even, odd = (
        scheduled(product(64, 768, 3072), ROWS_OF_64.format(rows, tile), one)
        for rows, tile in ((64, 8), (63, 7))
    )
    assert odd.packing > 1.9 * even.packing
    alone = scheduled(product(64, 768, 3072), ROWS_OF_64.format(64, 7), one)
    assert alone.packing == pytest.approx(even.packing)
    assert alone.compute > 1.01 * even.compute  # three sums wait where 24 do not


def test_blocks_prefetch_only_what_they_pack() -> None:
    """The other operand is read as it is without: 1000 x 1001 x 999, Sapphire Rapids."""
    with_mark, without = (
        scheduled(
            product(1000, 1001, 999),
            f"[for d0 by 504, for d1 by 64, for d2 by 504 {{pack 1{mark}}}, for d0 by 6, for d2, "
            "unroll d0, unroll d1 by 16, vector d1 by 16]",
            XEON,
        )
        for mark in (", prefetch", "")
    )
    assert with_mark.levels == without.levels


def test_places_are_chosen_alike_for_any_number_of_threads() -> None:
    """Blocks of part of a sum round otherwise, so this choice must not see the threads."""
    for sizes in ((45, 640, 141), (465, 777, 271)):
        depths: set[tuple[int, ...]] = set()
        for threads in (1, 2, 16):
            machine = replace(ZEN4, threads=threads, cores=threads)
            found = lowered(product(*sizes), machine).module
            functions = [f for f in found.ops if isinstance(f, kernel.FuncOp)]
            depths.add(kernel_levels(functions[-1]).blocks[-1:])
        assert len(depths) == 1


def test_loops_that_do_not_run_share_nothing() -> None:
    shares = scheduled(unary("exp", "4x0xf32"), "[parallel d1 {grain 4}, for d0]")
    assert shares.threads == 1


def test_stores_that_cross_the_end_of_a_line_take_two() -> None:
    """Granite Rapids: a vector is stored in 1.0 cycles, in 2.0 across the end of a line."""
    levels = "[for d0, for d1 by 16, vector d1 by 16]"
    stores: list[float] = []
    for columns in (1024, 1021):
        text = unary("neg", f"64x{columns}xf32")
        (function,) = (f for f in lowered(text, XEON).module.ops if isinstance(f, kernel.FuncOp))
        (nest,) = nests_of(readings_of(function, XEON.fma, assumed), schedule_from(levels))
        stores.append(ports_of(nest, XEON).stores)
    assert stores == pytest.approx([64 * 64, 64 * 63 * (1 + 15 / 16) + 64 * 13], rel=0.01)


STEPS = """
func.func @main(%w: tensor<512x512xf32>, %b: tensor<1048576xf32>, %h: tensor<1x512xf32>)
    -> (tensor<1x512xf32>, tensor<1048576xf32>) {
  %r = nd.scan (%x = %h) {length = 100} : (tensor<1x512xf32>) -> tensor<1x512xf32> {
    %y = nd.matmul %x, %w : (tensor<1x512xf32>, tensor<512x512xf32>) -> tensor<1x512xf32>
    nd.yield %y : tensor<1x512xf32>
  }
  %n = nd.exp %b : tensor<1048576xf32>
  func.return %r, %n : tensor<1x512xf32>, tensor<1048576xf32>
}
"""


def test_an_operand_of_each_iteration_is_near() -> None:
    """The matrix of a loop was used in the iteration before, whatever a call touches besides."""
    for stage in ("kernels", "buffers"):
        program = Program(lowered(STEPS, XEON, stage).module)
        (distances,) = (d for name, d in program.idle.items() if "matmul" in name)
        assert 0 < max(distances.values()) < 1.1 * 512 * 512 * 4


def test_windows_of_one_array_come_from_memory_once() -> None:
    text = """
func.func @main(%x: tensor<1024x1024xf32>) -> tensor<1022x1024xf32> {
  %a = nd.slice %x[:1022, :] : tensor<1024x1024xf32> -> tensor<1022x1024xf32>
  %b = nd.slice %x[2:, :] : tensor<1024x1024xf32> -> tensor<1022x1024xf32>
  %c = nd.add %a, %b : tensor<1022x1024xf32>
  func.return %c : tensor<1022x1024xf32>
}
"""
    program = Program(lowered(text, XEON, "buffers").module)
    (distances,) = program.idle.values()
    assert sorted(d < 0 for d in distances.values()) == [False, False, True]


def test_windows_without_common_elements_come_from_memory_each() -> None:
    """The left border of an image ends after the right one begins, but they share no element."""
    border = "memref<16x2x256xf32, strided<[16384, 256, 1], offset: ?>>"
    text = f"""
kernel.func @fill(%0: {border}, %1: {border}) attributes {{kernel.shared = 3 : i64}} {{
  %2 = arith.constant 0.000000e+00 : f32
  linalg.fill ins(%2 : f32) outs(%0 : {border})
  linalg.fill ins(%2 : f32) outs(%1 : {border})
  kernel.return
}}
func.func @main(%x: memref<16x64x256xf32> {{kernel.role = "output"}}) {{
  %0 = memref.subview %x[0, 0, 0] [16, 2, 256] [1, 1, 1]
    : memref<16x64x256xf32> to memref<16x2x256xf32, strided<[16384, 256, 1]>>
  %1 = memref.cast %0 : memref<16x2x256xf32, strided<[16384, 256, 1]>> to {border}
  %2 = memref.subview %x[0, 62, 0] [16, 2, 256] [1, 1, 1]
    : memref<16x64x256xf32> to memref<16x2x256xf32, strided<[16384, 256, 1], offset: 15872>>
  %3 = memref.cast %2
    : memref<16x2x256xf32, strided<[16384, 256, 1], offset: 15872>> to {border}
  kernel.launch @fill outs(%1, %3 : {border}, {border})
  func.return
}}
"""
    module = parse_module(registry().context(), text, "windows")
    assert Program(module).idle["fill"] == {0: 2 * 16 * 2 * 1024, 1: 2 * 16 * 2 * 1024}
