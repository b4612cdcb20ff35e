"""An example of each function of `stepwell.numpy`, for its page of the reference.

The page shows NumPy's result; the tests run all of them under `sw.jit` and compare.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

import stepwell.numpy as snp
from stepwell.frontend.facade import Ufunc
from stepwell.frontend.tracing import active_trace

ARRAYS = {
    "x": "np.array([0.5, 0.25, 1.0])",
    "y": "np.array([2.0, -0.5, 1.0])",
    "i": "np.array([5, 3, 6])",
    "j": "np.array([1, 2, 3])",
    "b": "np.array([True, False, True])",
    "m": "np.array([[3, 1, 2], [6, 5, 4]])",
    "w": "np.array([nan, 1.0, 3.0, 2.0])",
}
"""The arrays in the examples."""

EXAMPLES = """
all(m > 1, axis=1)
allclose(x, x + 1e-12)
amax(m)
amin(m)
any(m > 5, axis=0)
append(x, y)
apply_along_axis(np.sum, 1, m)
apply_over_axes(np.sum, m, [0, 1])
arange(2, 11, 3)
argmax(m, axis=1)
argmin(m, axis=1)
argpartition(i, 1)
argsort(m, axis=1)
argwhere(np.array([[0, 1], [1, 0]]), size=2)
around(y * 1.7)
array([1, 2, 3])
array_equal(x, y)
array_split(np.arange(5), 2)
asanyarray(x)
asarray(x)
ascontiguousarray(m.T)
astype(x, np.float32)
atleast_1d(2.0)
atleast_2d(x)
atleast_3d(x)
average(x, weights=j)
bincount(np.array([0, 1, 1, 3]))
block([[m], [m]])
broadcast_arrays(x, m)
broadcast_to(x, (2, 3))
choose(np.array([0, 1, 0]), [i, j])
clip(m, 2, 5)
column_stack([x, y])
compress(np.array([True, False, True]), x)
concat([x, y])
concatenate([m, m], axis=1)
convolve(x, y)
copy(x)
corrcoef(m)
correlate(x, y)
count_nonzero(m > 2)
cov(m)
cross(x, y)
cumprod(j)
cumsum(m, axis=1)
cumulative_prod(j)
cumulative_sum(j)
delete(i, 1)
diag(j)
diag_indices_from(np.ones((2, 2)))
diagflat(j)
diagonal(m)
diff(i)
digitize(x, np.array([0.3, 0.7]))
dot(m, j)
dsplit(np.ones((1, 1, 2)), 2)
dstack([x, y])
ediff1d(i)
einsum("ij,j->i", m, j)
empty_like(np.zeros(0))
empty(0)
expand_dims(x, 0)
extract(np.array([True, False, True]), x)
eye(2, 3)
finfo(np.float32).eps
flatnonzero(np.array([0, 1, 2]), size=2)
flip(m, axis=1)
fliplr(m)
flipud(m)
full(2, 7.0)
full_like(x, 7)
gradient(i)
histogram(x, bins=2)
histogram_bin_edges(x, bins=2)
hsplit(m, 3)
hstack([x, y])
identity(2)
iinfo(np.int16).max
inner(m, j)
insert(i, 1, 9)
intersect1d(np.array([1, 2]), np.array([2, 3]), size=1)
interp(0.4, np.array([0.0, 1.0]), np.array([10.0, 20.0]))
isclose(x, 0.5)
isin(m, j)
ix_([0, 1], [2])
kron(j, j)
lexsort((j, i))
linspace(0, 1, 5)
matrix_transpose(m)
max(m, axis=0)
mean(m, axis=0)
median(m, axis=1)
meshgrid(j, x)
min(m, axis=0)
moveaxis(m, 0, 1)
nan_to_num(w)
nanargmax(w)
nanargmin(w)
nancumprod(w)
nancumsum(w)
nanmax(w)
nanmean(w)
nanmedian(w)
nanmin(w)
nanpercentile(w, 50)
nanprod(w)
nanquantile(w, 0.5)
nanstd(w)
nansum(w)
nanvar(w)
ndim(m)
nonzero(np.array([0, 1, 2]), size=2)
ones(2)
ones_like(x)
outer(j, j)
pad(i, 1)
partition(i, 1)
percentile(m, 50)
permute_dims(m, (1, 0))
piecewise(x, [x < 0.4, x >= 0.4], [-1, 1])
polyadd(j, j)
polyder(j)
polyint(y)
polysub(j, j)
polyval(j, 2)
prod(m, axis=1)
ptp(m, axis=1)
quantile(m, 0.25)
ravel(m)
ravel_multi_index((1, 2), (2, 3))
repeat(i, 2)
reshape(m, (3, 2))
resize(i, (2, 2))
result_type(np.int32, np.float32)
roll(i, 1)
rollaxis(m, 1)
rot90(m)
round(y * 1.23, 1)
searchsorted(j, 2.5)
select([x < 0.4, x >= 0.4], [x, -x])
setdiff1d(np.array([1, 2, 4]), np.array([2, 3]), size=2)
setxor1d(np.array([1, 2]), np.array([2, 3]), size=2)
shape(m)
sinc(x)
size(m)
sort(m, axis=1)
split(m, 3, axis=1)
squeeze(m[:1])
stack([x, y])
std(m, axis=0)
sum(m, axis=0)
swapaxes(m, 0, 1)
take(i, j - 1)
take_along_axis(m, m[:, :1] * 0, 1)
tensordot(m, j, 1)
tile(j, 2)
trace(m)
transpose(m)
trapezoid(j)
tri(2)
tril(m)
tril_indices_from(np.ones((2, 2)))
triu(m)
triu_indices_from(np.ones((2, 2)))
union1d(np.array([1, 2]), np.array([2, 3]), size=3)
unique(np.array([2, 1, 2]), size=2)
unravel_index(4, (2, 3))
unstack(m)
unwrap(np.array([0.0, 7.0]))
vander(j)
var(m, axis=0)
vdot(j, i)
vsplit(m, 2)
vstack([x, y])
where(m > 2, m, 0)
zeros(2)
zeros_like(x)
angle(y)
array_equiv(x, x)
fix(y * 1.7)
geomspace(1, 8, 4)
histogram2d(x, y, bins=2)
imag(x)
iscomplex(x)
iscomplexobj(x)
isneginf(w)
isposinf(w)
isreal(x)
isrealobj(x)
logspace(0, 2, 3)
real(x)
real_if_close(x)
top_k(i, 2)
bitcast(np.float32(1), np.int32)
cumulative_max(i)
cumulative_min(i)
erf(x)
erfc(x)
logsumexp(x)
rsqrt(x)
"""

_SPECIAL = {
    "acosh": "acosh(1 + x)",
    "arccosh": "arccosh(1 + x)",
    "divmod": "divmod(i, j)",
    "matmul": "matmul(m, j)",
    "matvec": "matvec(m, j)",
    "vecdot": "vecdot(m, j)",
    "vecmat": "vecmat(j, m.T)",
    "gcd": "gcd(i, j)",
    "lcm": "lcm(i, j)",
}


def example(name: str) -> str:
    """Return the example call of the function ``name``, "" if it has none.

    >>> example("sort"), example("exp"), example("left_shift")
    ('sort(m, axis=1)', 'exp(x)', 'left_shift(i, j)')
    """
    if name in _BY_NAME:
        return _BY_NAME[name]
    function = getattr(snp, name)
    if not isinstance(function, Ufunc) or function.signature:
        return ""
    wanted = "?" if name.startswith("logical") else "d"
    types = [t for t in function.types if t[0] == wanted] or [
        t for t in function.types if t[0] == "l"
    ]
    taken = types[0][: function.nin] if types else "d" * function.nin
    operands = [_OPERANDS.get(kind, "ij")[k % 2] for k, kind in enumerate(taken)]
    return f"{name}({', '.join(operands)})"


_OPERANDS = {"d": "xy", "?": "bb", "l": "ij", "i": "ij", "q": "ij"}
_BY_NAME = {line.partition("(")[0]: line for line in EXAMPLES.strip().splitlines()} | _SPECIAL


def arrays() -> dict[str, Any]:
    """Return the arrays in the examples, by name."""
    return {name: eval(text, {"np": np, "nan": np.nan}) for name, text in ARRAYS.items()}


def computed(text: str, names: dict[str, Any]) -> Any:
    """Return the result of an example, with ``names`` for its arrays.

    The argument ``size``, which bounds a dynamic shape, is not passed to NumPy.
    """
    if active_trace() is None:
        text = re.sub(r", size=\d+", "", text)
    function: Callable[..., Any] = eval(f"lambda: snp.{text}", {"np": np, "snp": snp, **names})
    return function()
