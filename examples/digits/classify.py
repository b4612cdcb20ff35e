"""Tell handwritten digits with a compiled network, and compare it with NumPy: `make demo`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from digits_data import MODEL, Digits, load, load_weights
from numpy.typing import NDArray
from numpy_network import network

import stepwell as sw

ENOUGH = 0.97
"""The accuracy below which this program fails."""
TOLERANCE = 1e-4
"""How far the logarithms of probabilities may be from NumPy's."""
SHADES = np.array(list("  .:-=+*#%@"))
FOLDER = Path("build/demo")
COMMANDS = (
    "stepwell run {model} --input {folder}/held_out.npy",
    "stepwell compile {model} -o {folder}/program",
    "stepwell-opt {model} -p decompose,nd-to-linalg,canonicalize,cse,fuse-elementwise",
)


def main() -> int:
    """Classify, compare, and say where to read on; return 0 where all is well."""
    held_out = load()[1]
    began = time.perf_counter()
    compiled = sw.compile(MODEL)
    print(f"\n{near(MODEL)} as C: {compiled.signature}")
    print(f"ready to run after {time.perf_counter() - began:.2f} s\n")
    well = show_results(compiled, held_out)
    show_times(compiled, held_out.images)
    show_kernels(compiled)
    show_stages(compiled)
    show_commands(held_out.images)
    return 0 if well else 1


def show_results(compiled: sw.Compiled, held_out: Digits) -> bool:
    """Classify the third held out; return whether well enough, and as NumPy does."""
    digits, logarithms = compiled(held_out.images)
    numpys, numpy_logarithms = network(load_weights(), held_out.images)
    print(drawn(held_out.images[:5]))
    print("".join(f"{f'a {d}':^16}" for d in digits[:5]))
    right = digits == held_out.labels
    accuracy, numpy_accuracy = right.mean(), (numpys == held_out.labels).mean()
    difference = np.abs(logarithms - numpy_logarithms).max()
    title(f"{len(right)} images that training never saw", "compiled", "NumPy")
    row("accuracy", f"{accuracy:.4f}", f"{numpy_accuracy:.4f}")
    row("classified rightly", f"{right.sum()}", f"{(numpys == held_out.labels).sum()}")
    row("largest difference of log probabilities", f"{difference:.1e}")
    return bool(accuracy >= ENOUGH and difference <= TOLERANCE)


def show_times(compiled: sw.Compiled, images: NDArray[np.uint8]) -> None:
    """Time both, in turns, on one image and on all of them."""
    title("time for an image, median", "compiled", "NumPy")
    show_time("one image at a time", compiled, images[:1])
    show_time(f"{len(images)} images at once", compiled, images)


def show_time(label: str, compiled: sw.Compiled, images: NDArray[np.uint8]) -> None:
    """Print a row of the table of times."""
    weights = load_weights()
    mine, numpys = medians((lambda: compiled(images), lambda: network(weights, images)))
    each = (f"{1e6 * seconds / len(images):.1f} us" for seconds in (mine, numpys))
    row(label, *each, f"{numpys / mine:.1f} x")


def medians(functions: Sequence[Callable[[], object]]) -> list[float]:
    """Return the median seconds of a call of each, called in turns for half a second."""
    times: list[list[float]] = [[] for _ in functions]
    end = time.perf_counter() + 0.5
    while time.perf_counter() < end or len(times[0]) < 5:
        for function, measured in zip(functions, times, strict=True):
            began = time.perf_counter()
            function()
            measured.append(time.perf_counter() - began)
    return [float(np.median(measured[1:])) for measured in times]


def show_kernels(compiled: sw.Compiled) -> None:
    """Print the kernels and the lines they came from."""
    title(f"{len(compiled.kernels)} kernels", f"lines of {MODEL.name}")
    for kernel in compiled.kernels:
        numbers = (line.rpartition(":")[2] for line in kernel.lines)
        print(f"  {kernel.name:<40}  {', '.join(numbers)}")


def show_stages(compiled: sw.Compiled) -> None:
    """Write the module as it is after each stage into files."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    title("each step down, to read", "lines")
    *stages, target = compiled.texts().items()
    named = [(f"{number:02}_{name}.mlir", text) for number, (name, text) in enumerate(stages, 1)]
    for name, text in (*named, ("program.c", target[1])):
        (FOLDER / name).write_text(text)
        row(f"{FOLDER / name}", f"{text.count(chr(10)):,}")


def show_commands(images: NDArray[np.uint8]) -> None:
    """Print commands to try on the same file."""
    np.save(FOLDER / "held_out.npy", images)
    title("to go on")
    for command in COMMANDS:
        print(f"  {near(Path(sys.executable).parent)}/", end="")
        print(command.format(model=near(MODEL), folder=FOLDER))
    print()


def drawn(images: NDArray[np.uint8]) -> str:
    """Return images side by side, two characters for a pixel of 0 to 16."""
    shades = SHADES[images.astype(int) * (len(SHADES) - 1) // 16]
    rows = np.repeat(shades, 2, axis=2).transpose(1, 0, 2)
    return "\n".join("".join(line.ravel()) for line in rows)


def near(path: Path) -> Path:
    """Return ``path`` as seen from the current folder, if it lies in it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def title(text: str, *columns: str) -> None:
    """Print a heading, and those of its columns."""
    print()
    row(text, *columns, margin="")


def row(text: str, *columns: str, margin: str = "  ") -> None:
    """Print one line of a table."""
    print((f"{margin + text:<42}" + "".join(f"{c:>12}" for c in columns)).rstrip())


if __name__ == "__main__":
    sys.exit(main())
