"""Fill the tables of operators, methods and names of traced values.

Every module with `public` functions is listed here, or in `late`.
"""

from stepwell.frontend import (
    assignment,
    creation,
    elementwise,
    indexing,
    joining,
    known,
    limits,
    linear_algebra,
    lists,
    manipulation,
    methods,
    naming,
    reducing,
    reduction,
    sorting,
    table,
    ufuncs,
)
from stepwell.frontend.tensor import Tensor

assert methods and limits and reducing

for _module in (
    *(creation, elementwise, joining, linear_algebra, manipulation, reduction, sorting),
):
    for _name, _function in vars(_module).items():
        if callable(_function) and not _name.startswith("_"):
            Tensor.operators[_name] = _function

Tensor.operators.update(
    at=indexing.at,
    attribute_refused=naming.attribute_refused,
    call_function=table.call_function,
    call_ufunc=ufuncs.call_ufunc,
    fitting=assignment.fitting,
    getitem=assignment.getitem,
    item=ufuncs.item,
    setitem=assignment.setitem,
    ufunc=ufuncs.ufunc,
    write=assignment.write,
    write_whole=assignment.write_whole,
    known=known.known_method,
    content=known.content_of,
    rounded=ufuncs.rounded,
    take=indexing.take,
    tolist=lists.tolist,
)
Tensor.operators["method"] = table.method_named
