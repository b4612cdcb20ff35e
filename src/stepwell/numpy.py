"""NumPy's functions on traced values, under the names of the Python array API standard.

``import stepwell.numpy as snp``. The functions describe a computation, so they are called inside a
function given to `stepwell.jit`. Dtypes are NumPy's; there is no implicit float64: the default is
float32, and a Python number takes the dtype of the array it meets.
"""

from __future__ import annotations

from math import e, inf, nan, pi

import numpy as _numpy

from stepwell.frontend import operators as _operators
from stepwell.frontend.creation import (
    arange,
    asarray,
    eye,
    full,
    full_like,
    linspace,
    meshgrid,
    ones,
    ones_like,
    tril,
    triu,
    zeros,
    zeros_like,
)
from stepwell.frontend.elementwise import *  # noqa: F403  the table of functions is the namespace
from stepwell.frontend.indexing import take, take_along_axis
from stepwell.frontend.linear_algebra import einsum, matmul, outer, tensordot, trace, vecdot
from stepwell.frontend.manipulation import (
    broadcast_arrays,
    broadcast_to,
    concat,
    expand_dims,
    flip,
    matrix_transpose,
    moveaxis,
    pad,
    permute_dims,
    ravel,
    repeat,
    reshape,
    roll,
    split,
    squeeze,
    stack,
    swapaxes,
    tile,
    transpose,
    unstack,
)
from stepwell.frontend.reduction import (
    all,
    any,
    argmax,
    argmin,
    cumulative_max,
    cumulative_min,
    cumulative_prod,
    cumulative_sum,
    diff,
    logsumexp,
    max,
    mean,
    min,
    prod,
    std,
    sum,
    var,
)
