"""kernel.callback: a call of the host process, through a function pointer that it has set.

{
  void *const given[] = {x, y};
  const int64_t steps[] = {1, 1};
  if (!sw_host || sw_host("f#0", given, steps)) { sw_fault(fault, 1048576, 0, 0); return; }
}
"""

from __future__ import annotations

from stepwell.core.guards import Guard
from stepwell.core.host_functions import FAILED
from stepwell.dialects import kernel
from stepwell.dialects.types import place_of
from stepwell.lowering.emit.c_spelling import CSpelling
from stepwell.lowering.emit.writer import Writer, emit
from stepwell.transforms.passes import fail

POINTER = "static int32_t (*sw_host)(const char *, void *const *, const int64_t *);"


@emit(kernel.CallbackOp)
def _callback(w: Writer, op: kernel.CallbackOp) -> None:
    if not isinstance(w.spelling, CSpelling):
        fail(op, "a device calls no Python function")
    assert w.faults is not None
    w.spelling.prelude.functions["sw_host"] = POINTER
    buffers = [w.buffer(v) for v in (*op.inputs, *op.outputs)]
    steps = [step for each in buffers for step in each.strides]
    at = place_of(op)
    number = w.faults.number_of(Guard((FAILED,), str(at) if at else "", "RuntimeError"))
    with w.block(""):
        given = ", ".join(f"(void *){each.pointer}" for each in buffers)
        w.line(f"void *const given[] = {{{given or 0}}};")
        w.line(f"const int64_t steps[] = {{{', '.join(steps) or 0}}};")
        call = f'sw_host("{_literal(op.function.data)}", given, steps)'
        noted = w.spelling.fault(number, "0", "0")
        w.line(f"if (!sw_host || {call}) {{ {noted} {w.bail()} }}")


def _literal(name: str) -> str:
    """Return a name as a C string literal, with escapes for all but plain characters."""
    plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.<>#: "
    return "".join(
        letter if letter in plain else "".join(f"\\{byte:03o}" for byte in letter.encode())
        for letter in name
    )
