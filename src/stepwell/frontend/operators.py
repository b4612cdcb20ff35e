"""Fill the table behind the operators and methods of traced values."""

from stepwell.frontend import (
    creation,
    elementwise,
    indexing,
    linear_algebra,
    manipulation,
    reduction,
)
from stepwell.frontend.tensor import Tensor

for _module in (creation, elementwise, linear_algebra, manipulation, reduction):
    for _name, _function in vars(_module).items():
        if callable(_function) and not _name.startswith("_"):
            Tensor.operators[_name] = _function

Tensor.operators.update(
    at=indexing.at,
    cumprod=reduction.cumulative_prod,
    cumsum=reduction.cumulative_sum,
    getitem=indexing.getitem,
)
