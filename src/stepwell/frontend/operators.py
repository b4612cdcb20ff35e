"""Fill the tables behind the operators and methods of traced values, and of names.

A module with functions that are `public` is listed here.
"""

from stepwell.frontend import (
    assignment,
    choosing,
    creation,
    einstein,
    elementwise,
    histograms,
    indexing,
    inserting,
    joining,
    known,
    limits,
    linear_algebra,
    manipulation,
    matrices,
    methods,
    nan_functions,
    order_statistics,
    reducing,
    reduction,
    sets,
    signals,
    sorting,
    statistics,
    table,
    ufuncs,
)
from stepwell.frontend.tensor import Tensor

assert methods and limits and choosing and einstein and histograms and inserting and matrices
assert nan_functions and order_statistics and reducing and sets and signals and statistics

for _module in (
    *(creation, elementwise, joining, linear_algebra, manipulation, reduction, sorting),
):
    for _name, _function in vars(_module).items():
        if callable(_function) and not _name.startswith("_"):
            Tensor.operators[_name] = _function

Tensor.operators.update(
    at=indexing.at,
    call_function=table.call_function,
    call_ufunc=ufuncs.call_ufunc,
    getitem=assignment.getitem,
    setitem=assignment.setitem,
    ufunc=ufuncs.ufunc,
    write=assignment.write,
    known=known.known_method,
    content=known.content_of,
    rounded=ufuncs.rounded,
    take=indexing.take,
)
Tensor.methods.update(table.METHODS)
