"""Load lanes at a small stride as whole vectors, and pick the lanes by shuffles."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import SSAValue

from stepwell.lowering.linalg_to_loops.writer import Writer


def load_strided(
    writer: Writer,
    width: int,
    step: int,
    load: Callable[[int], SSAValue],
    hint: str | None,
    before: SSAValue | None = None,
) -> SSAValue:
    """Return ``width`` lanes, ``step`` elements apart.

    The last vector ends with the last lane, so nothing beyond it is read.

    load : loads the vector that begins at a distance from the first lane, in elements
    before : the same number of lanes, which begin ``step`` elements before
    """
    reach = step * (width - 1)
    if before is not None and step > 1:
        lanes = [*range(1, width), 2 * width - 1]
        return writer.shuffle(before, load(reach - width + 1), lanes, hint)
    starts = [k * width for k in range(step - 1)] if step > 0 else []
    starts.append(reach - width + 1 if step > 0 else reach)
    parts = [load(start) for start in starts]
    last = len(parts) - 1
    of = [max(min(k * step // width, last), 0) for k in range(width)]
    place = [k * step - starts[part] for k, part in enumerate(of)]
    if not last:
        return writer.shuffle(parts[0], parts[0], place, hint)
    value = parts[0]
    for part in range(1, len(parts)):
        lanes = [
            width + place[k] if of[k] == part else place[k] if part == 1 else k
            for k in range(width)
        ]
        lanes = [lane if of[k] <= part else 0 for k, lane in enumerate(lanes)]
        value = writer.shuffle(value, parts[part], lanes, hint)
    return value
