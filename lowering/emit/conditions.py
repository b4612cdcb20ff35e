"""kernel.check: a comparison that ends the call if it fails, as guards do.

if (!ok) { sw_fault(fault, 1048576, i, 0); return; }  // lookup.py:12
"""

from __future__ import annotations

from stepwell.dialects import kernel
from stepwell.lowering.emit.writer import Writer, emit


@emit(kernel.CheckOp)
def _check(w: Writer, op: kernel.CheckOp) -> None:
    assert w.faults is not None
    if (holds := w[op.condition]) in ("1", "true"):
        return
    a, b = (*(w[v] for v in op.values), "0", "0")[:2]
    noted = w.spelling.fault(w.faults.number_of(op.guard), a, b)
    w.line(f"if (!({holds})) {{ {noted} {w.bail()} }}")
