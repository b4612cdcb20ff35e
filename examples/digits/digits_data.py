"""The images, and which of them are for training: the same two thirds for everyone."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).parent
MODEL = HERE / "digits.mlir"
WEIGHTS = HERE / "digits.npz"


class Digits(NamedTuple):
    """Images of 8x8 pixels from 0 to 16, and which digit each is."""

    images: NDArray[np.uint8]
    labels: NDArray[np.uint8]


def load() -> tuple[Digits, Digits]:
    """Return two thirds of the data to train on, and the third that is held out."""
    with np.load(HERE / "images.npz") as table:
        images, labels = table["images"], table["labels"]
    shuffled = np.random.RandomState(0).permutation(len(images))  # a stream that never changes
    training, held_out = np.split(shuffled, [len(images) * 2 // 3])
    return Digits(images[training], labels[training]), Digits(images[held_out], labels[held_out])


def load_weights() -> dict[str, NDArray[np.float32]]:
    """Return the trained weights by name."""
    with np.load(WEIGHTS) as table:
        return dict(table)
