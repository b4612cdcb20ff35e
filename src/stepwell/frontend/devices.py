"""Arrays on devices: `device_put`, `device_get` and `devices`."""

from __future__ import annotations

from typing import Any

import numpy as np

from stepwell.core.dtypes import dtype_of
from stepwell.frontend.calls import argument_of
from stepwell.frontend.promotion import is_number
from stepwell.frontend.pytree import flatten, paths, unflatten
from stepwell.frontend.specs import ShapeDtypeStruct
from stepwell.frontend.state.variables import Variable
from stepwell.frontend.tensor import Tensor
from stepwell.runtime.device_arrays import DeviceArray, put
from stepwell.runtime.entry import numpy_dtype
from stepwell.runtime.opencl.device import Device, open_device
from stepwell.runtime.opencl.device import devices as found_devices


def devices() -> tuple[Device, ...]:
    """Return the devices that programs can run on, as `stepwell devices` lists them.

    raises CompileError : there is no device, or no pyopencl

    >>> import stepwell as sw
    >>> [device.name for device in sw.devices() if device.kind == "cpu"][:1]
    ['cpu:0']
    """
    return found_devices()


def device_put(x: Any, device: Device | str | None = None) -> Any:
    """Return ``x`` with its arrays in the memory of a device, where programs use them.

    x : an array, a number, or tuples, lists and dicts of them. Arrays already on the device are
        returned as they are; so are traced values, since a traced function runs on the device
        of its arguments
    device : one of `devices`, or its name; by default the device that programs run on

    A function compiled for the device returns such arrays if an argument is one. They stay on the
    device until NumPy needs them.

    raises CompileError : the device does not exist
    raises MemoryError : the device's memory is too small
    raises TypeError : ``x`` holds a `sw.Variable`, which stays on the host, or another non-array

    >>> import numpy as np, stepwell as sw
    >>> twice = sw.jit(lambda x: x + x, device="cpu")
    >>> x = sw.device_put(np.arange(3.0), "cpu")
    >>> twice(twice(x)).shape
    (3,)
    >>> np.asarray(twice(x))
    array([0., 2., 4.])
    """
    leaves, tree = flatten(x)
    where = device if isinstance(device, Device) else open_device(device or "")
    names = paths(tree, "x")
    return unflatten(tree, [_put(n, leaf, where) for n, leaf in zip(names, leaves, strict=True)])


def device_get(x: Any) -> Any:
    """Return ``x`` with each array on a device copied to the host.

    >>> import numpy as np, stepwell as sw
    >>> sw.device_get([3, sw.device_put(np.ones(2), "cpu")])
    [3, array([1., 1.])]
    """
    leaves, tree = flatten(x)
    return unflatten(tree, [np.asarray(v) if type(v) is DeviceArray else v for v in leaves])


def _put(name: str, leaf: Any, device: Device) -> Any:
    if isinstance(leaf, Tensor):
        return leaf
    if type(leaf) is DeviceArray:
        return leaf if leaf.device is device else put(np.asarray(leaf), device)
    if isinstance(leaf, Variable):
        raise TypeError(f"'{name}' is a sw.Variable, which stays on the host: put its .value")
    if isinstance(leaf, ShapeDtypeStruct):
        raise TypeError(f"'{name}' is {leaf!r}, which has no numbers")
    array, _ = argument_of(name, leaf)
    kind = dtype_of(array.dtype.newbyteorder("="))
    assert kind is not None or is_number(leaf)
    array = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(array.shape)
    return put(array if kind is None else array.view(numpy_dtype(kind.name)), device)
