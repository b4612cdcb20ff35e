"""A bar with the loss and images a second: by `rich` where that is installed, else a plain line."""

from __future__ import annotations

import sys
import time
from importlib.util import find_spec
from typing import Any

WIDTH = 30
OFTEN = 0.1
"""Seconds between two lines: to write each would take longer than a step."""


class Progress:
    """How far a training is."""

    def __init__(self, total: int) -> None:
        """Begin.

        total : how many steps there are
        """
        self.total = total
        self._last = 0.0
        self._text = ""
        self._terminal = sys.stdout.isatty()
        self._rich: Any = _rich_bar(total) if self._terminal and find_spec("rich") else None

    def show(self, step: int, where: str, loss: float, images: float) -> None:
        """Tell of a step: its loss, and how many images a second are learnt from."""
        self._text = f"{where:<9} loss {loss:.4f}  {images:>8,.0f} images/s"
        now = time.perf_counter()
        if now - self._last < OFTEN and step < self.total:
            return
        self._last = now
        if self._rich is not None:
            self._rich[0].update(self._rich[1], completed=step, text=self._text)
        elif self._terminal:
            full = WIDTH * step // self.total
            print(f"\r{'#' * full}{'.' * (WIDTH - full)} {self._text}", end="", flush=True)

    def done(self) -> None:
        """End: what was shown last stays."""
        if self._rich is not None:
            self._rich[0].stop()
        else:
            print(("\r" + "#" * WIDTH + " " if self._terminal else "") + self._text)


def _rich_bar(total: int) -> Any:
    """Return a running bar of `rich` and the number of its task."""
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn  # pyright: ignore
    from rich.progress import Progress as Bar  # pyright: ignore

    columns: Any = BarColumn(), TextColumn("{task.fields[text]}"), TimeElapsedColumn()
    bar: Any = Bar(*columns)
    bar.start()
    return bar, bar.add_task("", total=total, text="")
