"""kernel.callback in an OpenCL host schedule: arrays are copied to the host, and back.

{"do": "callback", "function": "f#0", "number": 1048576,
 "inputs": [{"place": ["arena", 0], "sizes": [4], "strides": [1], "dtype": "f32"}], "outputs": []}
"""

from __future__ import annotations

from stepwell.core.guards import Guard
from stepwell.core.host_functions import FAILED
from stepwell.core.host_schedule import Step
from stepwell.dialects import kernel
from stepwell.dialects.types import place_of
from stepwell.lowering.emit.host_guards import Host
from stepwell.lowering.emit.places import Place


def called(h: Host, op: kernel.CallbackOp) -> None:
    """Append a call of a Python function."""
    assert h.unit.faults is not None
    at = place_of(op)
    number = h.unit.faults.number_of(Guard((FAILED,), str(at) if at else "", "RuntimeError"))
    inputs, outputs = ([_array(h.places[v]) for v in each] for each in (op.inputs, op.outputs))
    h.steps.append(
        {
            "do": "callback",
            "function": op.function.data,
            "number": number,
            "inputs": inputs,
            "outputs": outputs,
        }
    )


def _array(place: Place) -> Step:
    return {
        "place": [place.buffer, place.skip],
        "sizes": list(place.sizes),
        "strides": list(place.strides),
        "dtype": place.element,
    }
