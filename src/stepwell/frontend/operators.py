"""Fill the table behind the operators and methods of traced values."""

from stepwell.frontend import (
    assignment,
    creation,
    elementwise,
    indexing,
    linear_algebra,
    manipulation,
    numpy_table,
    reduction,
    sorting,
    ufuncs,
)
from stepwell.frontend.tensor import Tensor

for _module in (creation, elementwise, linear_algebra, manipulation, reduction, sorting):
    for _name, _function in vars(_module).items():
        if callable(_function) and not _name.startswith("_"):
            Tensor.operators[_name] = _function

Tensor.operators.update(
    at=indexing.at,
    call_function=numpy_table.call_function,
    call_ufunc=ufuncs.call_ufunc,
    getitem=assignment.getitem,
    setitem=assignment.setitem,
    ufunc=ufuncs.ufunc,
    write=assignment.write,
    take=indexing.take,
)
Tensor.methods.update(numpy_table.METHODS)
