"""Messages for unsupported names of NumPy, which name a supported replacement."""

from __future__ import annotations

import numpy as np

from stepwell.frontend.table import nearest, nearest_of
from stepwell.frontend.torch_names import METHODS

_LATER = {
    "complex": "complex numbers are not supported yet; keep the real and imaginary parts apart",
    "fft": "numpy.fft is not supported yet",
    "random": "use sw.random, whose numbers are the same everywhere",
}

_COMPLEX = {
    *("complex64", "complex128", "complex256", "complexfloating", "csingle", "cdouble"),
    *("clongdouble", "sort_complex"),
}


_MEMORY = "an array has no memory while it is traced"
_NO_VARIABLE = "it stands for an array or a part of a batch here: return its new value"
_ATTRIBUTES = {
    **dict.fromkeys(("assign", "assign_add", "assign_sub"), _NO_VARIABLE),
    "base": _MEMORY,
    "byteswap": _MEMORY,
    "ctypes": _MEMORY,
    "data": _MEMORY,
    "device": "arrays of a trace are on no device yet",
    "dump": "return the array, and write it in the caller",
    "dumps": "return the array, and write it in the caller",
    "getfield": _MEMORY,
    "imag": _LATER["complex"],
    "resize": "an array keeps its shape; use numpy.resize(x, shape)",
    "setfield": _MEMORY,
    "setflags": _MEMORY,
    "strides": _MEMORY,
    **METHODS,
    "to_device": "arrays of a trace are on no device yet",
    "tobytes": "return the array, and write it in the caller",
    "tofile": "return the array, and write it in the caller",
}


def attribute_refused(name: str) -> str:
    """Return why a traced array lacks an attribute of NumPy's, and a replacement.

    >>> attribute_refused("resize")
    '; an array keeps its shape; use numpy.resize(x, shape)'
    """
    if name in _ATTRIBUTES:
        return f"; {_ATTRIBUTES[name]}"
    near = nearest_of(name, [n for n in dir(np.ndarray) if n not in _ATTRIBUTES], 0.75)
    return f"; the nearest is '{near}'" if near and not name.startswith("_") else ""


def refused(name: str) -> str:
    """Return why NumPy's ``name`` is not supported, and the nearest supported name.

    >>> refused("fft"), refused("nonsense")
    ('; numpy.fft is not supported yet', '')
    """
    if name in _COMPLEX:
        return f"; {_LATER['complex']}"
    if name in _LATER:
        return f"; {_LATER[name]}"
    if not hasattr(np, name):
        return f"; the nearest is {near}" if (near := nearest(name)) else ""
    near = nearest(name)
    return f": numpy.{name} is not known to Stepwell" + (f"; the nearest is {near}" if near else "")
