"""The demo: real images, a trained network, the same in NumPy."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import learn
import numpy as np
import pytest
import train
from digits_data import MODEL, Digits, load, load_weights
from numpy.typing import NDArray
from numpy_network import log_softmax, network

import stepwell as sw

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def compiled() -> sw.Compiled:
    return sw.compile(MODEL)


@pytest.fixture(scope="module")
def held_out() -> Digits:
    return load()[1]


def test_the_thirds_are_what_they_are_said_to_be(held_out: Digits) -> None:
    training = load()[0]
    assert (len(training.images), len(held_out.images)) == (1198, 599)
    assert held_out.images.max() == 16
    assert np.bincount(held_out.labels).min() > 40


def test_digits_are_told(compiled: sw.Compiled, held_out: Digits) -> None:
    digits, _ = compiled(held_out.images)
    assert (digits == held_out.labels).mean() >= 0.98


@pytest.mark.parametrize("count", [0, 1, 7, 600])
def test_any_number_of_images(compiled: sw.Compiled, held_out: Digits, count: int) -> None:
    images: NDArray[np.uint8] = np.resize(held_out.images, (count, 8, 8))
    digits, logarithms = compiled(images)
    wanted, wanted_logarithms = network(load_weights(), images)
    np.testing.assert_array_equal(digits, wanted)
    np.testing.assert_allclose(logarithms, wanted_logarithms, atol=1e-4)


def test_kernels_say_which_lines_they_came_from(compiled: sw.Compiled) -> None:
    """What a line says is in the kernels that name it, and no line is told of all of them."""
    text = MODEL.read_text().splitlines()
    said: dict[str, str] = {}
    for kernel in compiled.kernels:
        numbers = [int(line.rpartition(":")[2]) for line in kernel.lines]
        said[kernel.name] = " ".join(text[n - 1].partition("nd.")[2].split()[0] for n in numbers)
    assert said["main_conv_add_relu"] == "convolution broadcast add relu"
    assert said["main_matmul_add"] == "matmul broadcast add"
    assert said["main_log_softmax"] == "log_softmax argmax"
    assert said["main_max"] == "max_pool"


def test_nothing_is_copied(compiled: sw.Compiled) -> None:
    """What is padded is computed between its zeros."""
    assert "memref.copy" not in compiled.text("buffers")


def test_derivatives_by_hand_are_those_of_the_network(held_out: Digits) -> None:
    """Along a direction, the loss changes as its derivatives say."""
    images, labels = held_out.images[:3], held_out.labels[:3]
    weights = {k: w.astype(np.float64) for k, w in train.initial(np.random.RandomState(2)).items()}
    direction = train.initial(np.random.RandomState(3))

    def loss(step: float) -> float:
        moved = {name: w + step * direction[name] for name, w in weights.items()}
        return -float(network(moved, images)[1][range(3), labels].mean())  # pyright: ignore[reportArgumentType]

    grad = train.gradients(weights, images, labels)  # pyright: ignore[reportArgumentType]
    said = sum(float((grad[name] * direction[name]).sum()) for name in weights)
    assert (loss(1e-6) - loss(-1e-6)) / 2e-6 == pytest.approx(said, rel=1e-5)


def test_training_in_python(tmp_path: Path) -> None:
    """A few epochs are enough for most digits; the saved model needs no compiler."""
    command = [sys.executable, str(MODEL.parent / "learn.py"), "--short"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    found = re.search(r"accuracy on 599 held out +(\S+), by the saved model alone", ran.stdout)
    assert found is not None and float(found[1]) >= 0.95
    first, last = re.findall(r"^loss +(\S+) -> (\S+)$", ran.stdout, re.MULTILINE)[0]
    assert float(last) < 0.2 * float(first)
    assert "epoch 5 " in ran.stdout and "images/s" in ran.stdout
    assert re.search(r"steps a second +[\d,]+ compiled, [\d,]+ in NumPy", ran.stdout)
    picture = ElementTree.parse(tmp_path / "build/demo/loss.svg")
    lines = picture.findall("{http://www.w3.org/2000/svg}polyline")
    assert [len(each.attrib["points"].split()) for each in lines] == [185, 185]
    with np.load(tmp_path / "build/demo/learnt.npz") as saved:
        assert saved["w3"].shape == (288, 64)


def test_gradients_of_the_compiled_step_are_those_by_hand(held_out: Digits) -> None:
    images, labels = held_out.images[:3], held_out.labels[:3]
    params = learn.initial(np.random.RandomState(2))
    value, found = sw.jit(sw.value_and_grad(learn.loss))(params, images, labels)
    ours = {
        "w1": params["w1"].transpose(2, 3, 1, 0),
        "w2": params["w2"].transpose(2, 3, 1, 0),
        "w3": params["w3"].reshape(32, 9, 64).transpose(1, 0, 2).reshape(288, 64),
    }
    weights = {**params, **ours}
    wanted = train.gradients(weights, images, labels)
    logarithms = network(weights, images)[1]
    assert value == pytest.approx(-float(logarithms[range(3), labels].mean()), rel=1e-5)
    np.testing.assert_allclose(found["w1"].transpose(2, 3, 1, 0), wanted["w1"], atol=1e-5)
    np.testing.assert_allclose(found["w2"].transpose(2, 3, 1, 0), wanted["w2"], atol=1e-5)
    for name in ("w4", "b1", "b2", "b3", "b4"):
        np.testing.assert_allclose(found[name], wanted[name], atol=1e-5)


def test_log_softmax_of_the_comparison_adds_up() -> None:
    assert np.exp(log_softmax(np.array([[1, 2, 3]], np.float32))).sum() == pytest.approx(1)


def test_the_demo_and_what_it_recommends(tmp_path: Path) -> None:
    """Its tables are complete, its files are there, its commands work."""
    demo = [sys.executable, str(MODEL.parent / "classify.py")]
    ran = subprocess.run(demo, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "accuracy" in ran.stdout
    assert "main_conv_add_relu" in ran.stdout
    names = ("01_nd", "02_structured", "03_kernels", "04_buffers", "05_loops")
    for name in names:
        assert (tmp_path / f"build/demo/{name}.mlir").read_text().startswith("builtin.module")
    assert "stepwell_main" in (tmp_path / "build/demo/program.c").read_text()
    _, _, commands = ran.stdout.partition("to go on")
    for command in commands.split("\n")[1:4]:
        subprocess.run(command.split(), cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "build/demo/program/program.c").exists()
