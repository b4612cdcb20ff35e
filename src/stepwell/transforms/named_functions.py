"""Look up the function that the option of a pass names."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from stepwell.core.diagnostics import CompileError, Diagnostic, did_you_mean
from stepwell.transforms.passes import Pass, fail


def named_function(pass_: Pass, module: ModuleOp, name: str, verb: str, new: str) -> func.FuncOp:
    """Return the function ``name``, which must have a body; no function may be called ``new``.

    verb : the verb for the action of the pass, for messages
    """
    functions = {f.sym_name.data: f for f in module.ops if isinstance(f, func.FuncOp)}
    function = functions.get(name)
    if function is None:
        options = [name for name, f in functions.items() if f.body.blocks]
        help = did_you_mean(name, options) or (
            f"say which: {pass_.name}{{function=NAME}}; there is {', '.join(options) or 'none'}"
        )
        raise CompileError(
            Diagnostic("error", f"there is no function @{name} to {verb}", help=help)
        )
    if not function.body.blocks:
        fail(function, f"@{name} has no body to {verb}")
    if new in functions:
        fail(functions[new], f"@{new} is there already")
    return function
