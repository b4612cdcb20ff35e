"""`stepwell explain`: what was chosen, why, and how long it should take."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from stepwell.core.machine import Machine
from stepwell.core.source import Source
from stepwell.driver.lowering import Lowering
from stepwell.runtime import measuring
from stepwell.tools.main import main
from stepwell.transforms.kernels.schedule import reasons

RESOURCE = '%w: tensor<768x3072xf32> {nd.resource = "w"}'
MACHINE = "zen4,threads=2"


@pytest.fixture(autouse=True)
def known_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "measured", lambda: {"clock": 3000})


def product(rows: int, deep: int, columns: int) -> str:
    x, w, y = f"{rows}x{deep}", f"{deep}x{columns}", f"{rows}x{columns}"
    return (
        f"func.func @main(%x: tensor<{x}xf32>, %w: tensor<{w}xf32>) -> tensor<{y}xf32> {{\n"
        f"  %y = nd.matmul %x, %w : (tensor<{x}xf32>, tensor<{w}xf32>) -> tensor<{y}xf32>\n"
        f"  func.return %y : tensor<{y}xf32>\n}}\n"
    )


def said(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], *more: str) -> str:
    path = tmp_path / "m.mlir"
    path.write_text(text)
    assert main(["explain", str(path), "--machine", MACHINE, *more]) == 0
    return capsys.readouterr().out


def test_a_large_product(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(product(512, 768, 3072), tmp_path, capsys)
    assert "kernel main_matmul, from m.mlir:2" in text
    assert "2,415,919,104 operations, 16.5 MB read and written" in text
    assert "in blocks, %w packed: it has 9 MB and exceeds a quarter of L2 (1024 KB)" in text
    assert "schedule   [parallel d0 by " in text and "pack 1 as first" in text
    assert re.search(r"predicted  [\d.]+ ms on 2 threads", text) and "measured" not in text


def test_a_small_product(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(product(64, 80, 96), tmp_path, capsys)
    assert "read where they lie, operands take 1.02 of the time of blocks" in text
    assert "vectors of the result stay in registers" in text


def test_few_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(product(8, 768, 3072), tmp_path, capsys)
    assert "8 rows read what would be packed" in text


def test_what_only_the_run_knows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = (
        "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {\n"
        "  %y = nd.exp %x : tensor<?xf32>\n  func.return %y : tensor<?xf32>\n}\n"
    )
    text = said(module, tmp_path, capsys)
    assert "operations only the run knows" in text
    assert "where sizes that only the run knows are 256" in text
    assert "the first shared loop runs in parallel, only the run knows how many iterations" in text
    text = said(module, tmp_path, capsys, "--size", "1000000")
    assert "1,000,000 operations, 7.63 MB read and written" in text and "256" not in text
    np.save(tmp_path / "x.npy", np.ones(1000, np.float32))
    text = said(module, tmp_path, capsys, "--input", str(tmp_path / "x.npy"))
    assert "1,000 operations, 7.81 KB read and written" in text and "measured" not in text


@pytest.mark.machine("avx-512, 1 MiB, 2 cores")
def test_what_is_packed_and_turned_has_reasons(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weight = product(512, 768, 3072).replace("%w: tensor<768x3072xf32>", RESOURCE)
    np.savez(tmp_path / "m.npz", w=np.ones((768, 3072), np.float32))
    text = said(weight, tmp_path, capsys)
    assert "packed into panels of 64, the columns of a register tile" in text
    turned = (
        "func.func @main(%x: tensor<256x512xf32>) -> tensor<512x256xf32> {\n"
        "  %y = nd.transpose %x {permutation = [1, 0]} : tensor<256x512xf32> -> tensor<512x256xf32>\n"
        "  func.return %y : tensor<512x256xf32>\n}\n"
    )
    assert "transposed in registers" in said(turned, tmp_path, capsys)


def test_figures_are_those_of_the_block_that_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bytes = product(512, 512, 512).replace("f32", "i8").replace("%w :", "%w {dtype = i32} :")
    bytes = re.sub("(->|%y :) tensor<512x512xi8>", r"\1 tensor<512x512xi32>", bytes)
    text = said(bytes, tmp_path, capsys)
    levels = r"parallel d0 by (\d+), parallel d1 by (\d+),.* for d2 by (\d+) {pack"
    ((rows, columns, deep),) = re.findall(levels, text)
    assert f"block of {rows} rows, {columns} columns and a depth of {deep}" in text


def test_what_is_written_by_hand_is_no_choice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(tmp_path / "m.mlir").write_text(product(512, 768, 3072))
    assert main(["compile", str(tmp_path / "m.mlir"), "--stage", "kernels"]) == 0
    text = said(capsys.readouterr().out, tmp_path, capsys)
    assert "as written by hand" in text
    assert "worth a thread" not in text


def test_levels_on_buffers_are_those_on_tensors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def levels(text: str) -> list[str]:
        return re.findall(r"(?:schedule  |op \d+) *\[.*", said(text, tmp_path, capsys))

    text = product(512, 768, 3072)
    tensors = levels(text)
    machine = ("--machine", MACHINE)
    assert main(["compile", str(tmp_path / "m.mlir"), "--stage", "buffers", *machine]) == 0
    assert levels(capsys.readouterr().out) == tensors != []


def test_measured_and_chosen_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = product(16, 16, 16)
    assert "measured   " in said(text, tmp_path, capsys, "--measure", "--kernel", "main_*")
    assert main(["explain", str(tmp_path / "m.mlir"), "--kernel", "main_matmull"]) == 1
    assert "did you mean 'main_matmul'?" in capsys.readouterr().err


def test_reasons_are_by_kernel() -> None:
    with reasons.explanations() as found:
        Lowering.of(Source(product(64, 80, 96), "m", "main", Machine())).to("kernels")
    assert list(found) == ["main_matmul"]


def test_reasons_are_put_into_words_only_for_a_listener() -> None:
    def say() -> str:
        raise AssertionError("nobody listens")

    descent = Lowering.of(Source(product(4, 4, 4), "m", "main", Machine()))
    descent.to("kernels")
    (first, *_) = descent.module.ops
    reasons.explain_choice(first, say)


def test_versions_by_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = said(product(0, 768, 3072).replace("<0x", "<?x"), tmp_path, capsys)
    kept, one, *_, few, more = re.split(r"  version    ", told)
    assert "for d2 by 384 {pack 1" in kept
    assert one.startswith("d0 from 1 to 1\n  schedule   [parallel d1 by 1536, ")
    assert few.startswith("d0 from 7 to 8\n  schedule   [parallel d0 by 8 repeat, ")
    assert "why        not in blocks: 8 rows read what would be packed, 12 repay it" in few
    assert more.startswith("d0 from 9 to 11\n")


def test_some_rows_pack_while_they_compute(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = product(0, 768, 3072).replace("<0x", "<?x")
    xeon = said(text, tmp_path, capsys, "--machine", "sapphire-rapids,threads=1")
    assert "version    d0 from 12 to 64" in xeon and "pack 1 as double_buffered" in xeon
    assert "d0 from 12 to 64" not in said(text, tmp_path, capsys)


def test_sizes_choose_between_algorithms(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = """func.func @main(%x: tensor<1x32x?x?xf32>, %w: tensor<32x32x3x3xf32>) -> tensor<1x32x?x?xf32> {
      %y = nd.convolution %x, %w {low = [1, 1], high = [1, 1]} : (tensor<1x32x?x?xf32>, tensor<32x32x3x3xf32>) -> tensor<1x32x?x?xf32>
      func.return %y : tensor<1x32x?x?xf32>
    }"""
    told = said(text, tmp_path, capsys)
    sizes = "x.shape[2] = x.shape[3]"
    tiles, direct = (
        re.search(rf"kernel {name}.*\n.*\n(.*)", told) for name in ("main_matmul", "main_conv")
    )
    assert tiles and tiles[1] == f"  launched   for {sizes} 16 and from 18 on"
    assert direct and direct[1] == f"  launched   for {sizes} from 0 to 15 and 17"
    assert "launched" not in said(text.replace("?", "24"), tmp_path, capsys)
