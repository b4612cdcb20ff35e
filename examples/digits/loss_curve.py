"""A curve of losses as SVG: each step, and their mean over the steps around it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 640, 360, 56, 36, 16, 36
AROUND = 20
"""Steps before and after one that its mean is of."""


def curve(losses: Sequence[float], title: str) -> str:
    """Return a picture of ``losses``, all above 0, by step; the losses go by powers of ten."""
    values = np.log10(np.maximum(losses, 1e-6))
    smooth = [values[max(i - AROUND, 0) : i + AROUND + 1].mean() for i in range(len(values))]
    low, high = math.floor(values.min()), max(math.ceil(values.max()), math.floor(values.min()) + 1)
    wide, tall = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def x(step: float) -> float:
        return LEFT + wide * step / max(len(values) - 1, 1)

    def y(value: float) -> float:
        return TOP + tall * (high - value) / (high - low)

    def line(points: Sequence[float], style: str) -> str:
        places = " ".join(f"{x(i):.1f},{y(v):.1f}" for i, v in enumerate(points))
        return f'<polyline fill="none" {style} points="{places}"/>'

    rows = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}"'
        f' viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="14">{title}</text>',
    ]
    for power in range(low, high + 1):
        rows.append(f'<path stroke="#ddd" d="M{LEFT} {y(power):.1f}h{wide}"/>')
        label = f"{10.0**power:g}"
        rows.append(f'<text x="{LEFT - 6}" y="{y(power) + 4:.1f}" text-anchor="end">{label}</text>')
    for step in sorted({round(part * (len(values) - 1) / 4) for part in range(5)}):
        rows.append(
            f'<text x="{x(step):.1f}" y="{HEIGHT - 14}" text-anchor="middle">{step + 1}</text>'
        )
    rows.append(line(values.tolist(), 'stroke="#9bbfe0" stroke-width="0.7"'))
    rows.append(line(smooth, 'stroke="#1f5f9f" stroke-width="2"'))
    return "\n".join([*rows, "</svg>", ""])
