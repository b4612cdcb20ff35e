"""Train the network of the demo from scratch in Python: python examples/digits/learn.py [--short]

A step (loss, gradients, Adam) is one compiled program that updates parameters and moments where
they lie. The held-out third is looked at once, at the end, by the saved model: in a process that
knows nothing of the compiler.
"""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import train
from digits_data import Digits, load
from loss_curve import curve
from numpy.typing import NDArray
from progress import Progress

import stepwell as sw

BATCH, EPOCHS, RATE, DECAY = 32, 20, 3e-3, 1e-3
SHORT = 5
"""Epochs with --short."""
ENOUGH, ENOUGH_SHORT = 0.97, 0.95
"""The accuracies below which this program fails."""
FOLDER = Path("build/demo")

CLASSIFY = """
import sys
import numpy as np
import stepwell as sw

images, labels = (np.load(file) for file in sys.argv[2:4])
digits = sw.load(sys.argv[1])(images)
print(float((digits == labels).mean()), "xdsl" in sys.modules)
"""
"""What the process runs that only loads the saved model."""


class Learnt(NamedTuple):
    """What a training leaves."""

    params: dict[str, Any]
    losses: list[float]
    """Of each step."""
    rate: float
    """Steps a second, by the median of their times."""


def initial(random: np.random.RandomState) -> dict[str, Any]:
    """Return parameters that keep the variance of what passes through a relu, and zero biases."""
    convolutions = {"w1": (16, 1, 3, 3), "w2": (32, 16, 3, 3)}
    params: dict[str, Any] = {}
    for name, shape in {**convolutions, "w3": (288, 64), "w4": (64, 10)}.items():
        inputs, outputs = shape[1:], shape[0]
        if name not in convolutions:
            inputs, outputs = shape[:1], shape[1]
        spread = np.sqrt(2 / np.prod(inputs))
        params[name] = (random.standard_normal(shape) * spread).astype(np.float32)
        params[name.replace("w", "b")] = np.zeros(outputs, np.float32)
    return params


def scores(params: dict[str, Any], images: Any) -> Any:
    """Return the scores (n, 10) of the digits for images (n, 8, 8) of 0..16."""
    x = images[:, np.newaxis].astype(np.float32) * np.float32(1 / 16)
    x = sw.nn.relu(sw.nn.conv(x, params["w1"], padding=1, bias=params["b1"]))
    x = sw.nn.relu(sw.nn.conv(x, params["w2"], bias=params["b2"]))
    x = sw.nn.max_pool(x, 2).reshape(-1, 288)
    x = sw.nn.relu(x @ params["w3"] + params["b3"])
    return x @ params["w4"] + params["b4"]


def loss(params: dict[str, Any], images: Any, labels: Any) -> Any:
    """Return the mean cross entropy."""
    found = scores(params, images)
    return np.mean(sw.nn.softmax_cross_entropy_with_integer_labels(found, labels))


def batches(random: np.random.RandomState, digits: Digits) -> Iterator[Digits]:
    """Yield images in random order, shifted by up to a pixel each way; what is left over is not."""
    padded = np.pad(digits.images, ((0, 0), (1, 1), (1, 1)))
    shifted = np.stack([padded[:, i : i + 8, j : j + 8] for i in range(3) for j in range(3)])
    order = random.permutation(len(digits.images))
    for begin in range(0, len(order) - BATCH + 1, BATCH):
        chosen = order[begin : begin + BATCH]
        yield Digits(shifted[random.randint(0, 9, BATCH), chosen], digits.labels[chosen])


def learn(digits: Digits, epochs: int, progress: Progress) -> Learnt:
    """Train on ``digits``: the same in every run on one machine."""
    random = np.random.RandomState(1)
    start = initial(random)
    steps = epochs * (len(digits.images) // BATCH)
    schedule = sw.optim.cosine_decay_schedule(RATE, steps)
    mask = {name: name.startswith("w") for name in start}
    adam = sw.optim.adamw(schedule, weight_decay=DECAY, mask=mask)
    params = sw.tree.map(sw.Variable, start)
    state = sw.tree.map(sw.Variable, adam.init(start))

    @sw.jit
    def step(images: Any, labels: Any) -> Any:
        value, gradients = sw.value_and_grad(loss)(params, images, labels)
        updates, after = adam.update(gradients, state, params)
        sw.optim.apply_updates(params, updates)
        sw.tree.assign(state, after)
        return value

    losses: list[float] = []
    times: list[float] = []
    for epoch in range(epochs):
        for batch in batches(random, digits):
            began = time.perf_counter()
            losses.append(float(step(batch.images, batch.labels)))
            times.append(time.perf_counter() - began)
            rate = BATCH * len(times[1:]) / (sum(times[1:]) or math.inf)
            progress.show(len(losses), f"epoch {epoch + 1}", losses[-1], rate)
    progress.done()
    return Learnt(params, losses, 1 / float(np.median(times)))


def numpy_rate(digits: Digits) -> float:
    """Return how many steps a second NumPy makes, gradients by hand, by the median of an epoch."""
    random = np.random.RandomState(1)
    weights = train.initial(random)
    adam = train.Adam(weights)
    times: list[float] = []
    for batch in batches(random, digits):
        began = time.perf_counter()
        adam.step(train.gradients(weights, *batch), RATE)
        times.append(time.perf_counter() - began)
    return 1 / float(np.median(times))


def save(params: dict[str, Any], images: NDArray[np.uint8], folder: Path) -> None:
    """Save the parameters, and the model with them in it, for as many images at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "learnt.npz", **params)
    classify = sw.jit(lambda images: np.argmax(scores(params, images), axis=1))
    classify.trace(images).compile().save(folder / "learnt")


def classified(held_out: Digits, folder: Path) -> float:
    """Return the accuracy of the saved model, in a process that does not load the compiler."""
    files = [folder / f"held_out_{name}.npy" for name in held_out._fields]
    for file, array in zip(files, held_out, strict=True):
        np.save(file, array)
    command = [sys.executable, "-c", CLASSIFY, str(folder / "learnt"), *map(str, files)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    accuracy, compiler = said.split()
    assert compiler == "False", "the compiler was loaded to run a saved model"
    return float(accuracy)


def main() -> int:
    """Train, save, load, classify, compare; return 0 where enough was learnt."""
    short = "--short" in sys.argv[1:]
    training, held_out = load()
    epochs = SHORT if short else EPOCHS
    began = time.perf_counter()
    learnt = learn(training, epochs, Progress(epochs * (len(training.images) // BATCH)))
    seconds = time.perf_counter() - began
    save(learnt.params, held_out.images, FOLDER)
    (FOLDER / "loss.svg").write_text(curve(learnt.losses, "cross entropy of each step"))
    numpys = numpy_rate(training)
    accuracy = classified(held_out, FOLDER)
    print(f"{len(learnt.losses)} steps of {BATCH} images in {seconds:.1f} s, from scratch")
    print(f"loss                       {learnt.losses[0]:.3f} -> {learnt.losses[-1]:.4f}")
    print(f"accuracy on {len(held_out.images)} held out   {accuracy:.4f}, by the saved model alone")
    print(f"steps a second             {learnt.rate:,.0f} compiled, {numpys:,.0f} in NumPy", end="")
    print(f" ({learnt.rate / numpys:.1f} x)")
    print(f"{FOLDER / 'loss.svg'}, {FOLDER / 'learnt.npz'}, {FOLDER / 'learnt'}/")
    return 0 if accuracy >= (ENOUGH_SHORT if short else ENOUGH) else 1


if __name__ == "__main__":
    sys.exit(main())
