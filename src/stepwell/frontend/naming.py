"""What to write instead of NumPy's names that are not here."""

from __future__ import annotations

import numpy as np

from stepwell.frontend.table import nearest

_LATER = {
    "complex": "complex numbers are not supported yet; keep the real and imaginary parts apart",
    "fft": "numpy.fft is not supported yet",
    "linalg": "numpy.linalg is not supported yet; matmul, einsum and tensordot are here",
    "random": "use sw.random, whose numbers are the same everywhere",
}

_COMPLEX = {
    *("angle", "imag", "iscomplex", "iscomplexobj", "real_if_close", "csingle", "cdouble"),
    *("clongdouble", "complex64", "complex128", "complex256", "complexfloating"),
}


def refused(name: str) -> str:
    """Return why NumPy's ``name`` is not here, and the nearest that is.

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
