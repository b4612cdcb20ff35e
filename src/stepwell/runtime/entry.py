"""The slow path into a program, for calls with arguments that the guards refuse.

It converts arguments that can be converted without a change of value (a copy, logged once for each
call site), and otherwise raises an error with the argument's name, the expected type and the actual
one.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stepwell.core.checks import check_all
from stepwell.core.dtypes import DTYPES
from stepwell.core.guards import FIRST
from stepwell.core.host_functions import raised
from stepwell.core.shapes import DYNAMIC
from stepwell.core.signature import Signature, Tensor, numpy_name, spell
from stepwell.runtime.device_arrays import DeviceArray
from stepwell.runtime.extension import Callee

Array: TypeAlias = "NDArray[Any]"

LOG = logging.getLogger("stepwell")
PACKAGE = str(Path(__file__).parent.parent)


@cache
def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return NumPy's type of a dtype, for arrays passed to and from programs."""
    if name != "bf16":
        return DTYPES[name].numpy
    try:
        return np.dtype(import_module("ml_dtypes").bfloat16)
    except ImportError:
        raise TypeError(
            "the program takes or returns bf16, which NumPy lacks; "
            "install ml_dtypes (pip install 'stepwell[bf16]')"
        ) from None


@dataclass(eq=False)
class Entry:
    """Binds, converts and checks the arguments of one program."""

    signature: Signature
    callee: Callee | None = None
    """The program that is called once its arguments fit; set after construction."""
    noted: Callable[[], Sequence[int]] | None = None
    """Returns the numbers recorded by the guard that failed last in this thread."""
    in_place: bool = False
    """Whether a result may reuse the array of an argument."""
    device: Any = None
    """The device that the program runs on; None for the host."""
    complete: Callable[[], Any] | None = None
    """Makes the program serve all sizes; None if it does."""
    _reported: set[tuple[str, int, str, str]] = field(
        default_factory=set[tuple[str, int, str, str]]
    )

    @property
    def name(self) -> str:
        """The name of the called function."""
        return self.signature.entry

    def miss(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Serve a call that the guards refused."""
        assert self.callee is not None
        site = _call_site()
        named = dict(kwargs)
        out = named.pop("out", None)
        values = self._bind(args, named)
        specs = self.signature.arguments
        arrays = tuple(self._fit(s, v, site) for s, v in zip(specs, values, strict=True))
        self._check_sizes(arrays)
        if out is None:
            return self.callee.invoke(arrays, None)
        outs = self._outs(out)
        fresh = self.callee.invoke(arrays, None)
        results = fresh if isinstance(fresh, tuple) else (fresh,)
        self._check_out_shapes(outs, results)
        for target, result in zip(outs, results, strict=True):
            target[...] = result
        return out

    def update(
        self, args: Sequence[Any], donated: Collection[tuple[int, int]] = ()
    ) -> tuple[Array, ...]:
        """Call so that results overwrite the arguments that they replace; return all results.

        Such an argument is updated in place if its layout fits the program and no other argument
        overlaps it; otherwise it is copied before the run, and back after it.

        donated : pairs of a result and an argument that is not copied back
        """
        assert self.callee is not None
        arrays = [
            self._fit(spec, value, _call_site())
            for spec, value in zip(self.signature.arguments, args, strict=True)
        ]
        self._check_sizes(arrays)
        outs: list[Any] = [None] * len(self.signature.results)
        shared = _shared(arrays) if self.in_place else set[int]()
        for result, number in self.signature.into if self.in_place else ():
            array: Any = arrays[number]
            if number not in shared and (type(array) is DeviceArray or array.flags.writeable):
                outs[result] = array
        found = self.callee.invoke(
            tuple(arrays), tuple(outs) if any(out is not None for out in outs) else None
        )
        results = list(found) if isinstance(found, tuple) else [found]
        for result, number in self.signature.into:
            if (result, number) not in donated and results[result] is not args[number]:
                if type(args[number]) is DeviceArray:
                    raise ValueError(self._refused(number))
                np.copyto(args[number], results[result])
                results[result] = args[number]
        return tuple(results)

    def _refused(self, number: int) -> str:
        name = self.signature.arguments[number].name
        return f"argument '{name}' is passed twice, and the program changes it; pass a copy of one"

    def failed(self, code: int) -> NoReturn:
        """Raise the exception of a program's error number."""
        if (error := raised()) is not None:
            raise error
        if 0 <= code - FIRST < len(self.signature.guards):
            values = self.noted() if self.noted is not None else ()
            raise self.signature.guards[code - FIRST].fault(values)
        raise RuntimeError(f"{self.signature.entry} failed while running (error {code})")

    def _bind(self, args: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        """Return one value for each argument, from positional and keyword arguments."""
        names = [a.name for a in self.signature.arguments]
        name = self.signature.entry
        listed = f"({', '.join(names)})"
        if len(args) > len(names):
            raise TypeError(f"{name}{listed} takes {_count(len(names))}, got {len(args)}")
        bound = dict(zip(names, args, strict=False))
        for key, value in named.items():
            if key not in names:
                raise TypeError(f"{name}{listed} has no argument '{key}'")
            if key in bound:
                raise TypeError(f"{name}{listed} got two values for argument '{key}'")
            bound[key] = value
        if missing := [n for n in names if n not in bound]:
            listed_missing = ", ".join(f"'{n}'" for n in missing)
            plural = "s" if len(missing) > 1 else ""
            raise TypeError(f"{name}{listed} lacks argument{plural} {listed_missing}")
        return [bound[n] for n in names]

    def _fit(self, spec: Tensor, value: Any, site: tuple[str, int]) -> Array:
        """Return ``value`` as the contiguous native array that the program takes."""
        if type(value) is DeviceArray:
            return self._resident(spec, value)
        array = _as_array(spec, value)
        want = numpy_dtype(spec.dtype)
        if array.dtype.newbyteorder("=") != want:
            help = f"{spec.name}.astype({_spelled(want)})"
            raise TypeError(f"{_expected(spec)}, got {spell_array(array)}; help: {help}")
        if not _shape_fits(spec, array):
            raise ValueError(f"{_expected(spec)}, got {spell_array(array)}")
        reason = _reason_to_copy(array)
        if not reason:
            return array if array.dtype.num == want.num else array.view(want)
        if (key := (*site, spec.name, reason)) not in self._reported:
            self._reported.add(key)
            LOG.info(
                "%s:%d: argument '%s' is %s and is copied in every call", *site, spec.name, reason
            )
        return np.array(array, dtype=want, order="C", copy=True, subok=False)

    def _resident(self, spec: Tensor, value: DeviceArray) -> Any:
        """Return an array on the program's device after checking it."""
        self.check_place(spec, value)
        if value.dtype != numpy_dtype(spec.dtype) or not _shape_fits(spec, value):
            kind = ValueError if value.dtype == numpy_dtype(spec.dtype) else TypeError
            raise kind(f"{_expected(spec)}, got {spell(value.dtype.name, value.shape)}")
        assert value.memory is not None
        return value

    def check_place(self, spec: Tensor, value: DeviceArray) -> None:
        """Refuse an array that is not on the program's device."""
        if value.device is self.device:
            return
        here = "the host" if self.device is None else str(self.device)
        help = "np.asarray(x) copies it to the host"
        if self.device is not None:
            help += f", sw.device_put(x, '{here}') to {here}"
        raise TypeError(
            f"argument '{spec.name}' lies on {value.device}, and the program runs on {here}; "
            f"help: {help}"
        )

    def _check_sizes(self, arrays: Sequence[Array]) -> None:
        """Check the conditions on the `?`; complete a program that lacks code for such sizes."""
        sizes = dynamic_sizes(self.signature, arrays)
        try:
            self._check_equal(arrays)
        except ValueError as error:
            check_all(self.signature.checks, sizes, str(error))
            raise
        check_all(self.signature.checks, sizes)
        if self.complete is not None and not self.signature.serves(sizes):
            self.complete()

    def _check_equal(self, arrays: Sequence[Array]) -> None:
        """Check the `?` that must be equal."""
        axes = [
            (spec.name, axis, array.shape[axis])
            for spec, array in zip(self.signature.arguments, arrays, strict=True)
            for axis, size in enumerate(spec.shape)
            if size == DYNAMIC
        ]
        for number, want in self.signature.fixed:
            name, axis, size = axes[number]
            if size != want:
                raise ValueError(
                    f"argument '{name}': expected size {want} along axis {axis}, got {size}"
                )
        for group in self.signature.equal:
            name, axis, size = axes[group[0]]
            for other, other_axis, other_size in (axes[i] for i in group[1:]):
                if size != other_size:
                    raise ValueError(
                        f"arguments '{name}' and '{other}' do not fit together: "
                        f"'{name}' has size {size} along axis {axis}, "
                        f"'{other}' has size {other_size} along axis {other_axis}"
                    )

    def _outs(self, out: Any) -> tuple[Array, ...]:
        """Return the arrays of ``out=``, checked except for their shapes."""
        results = self.signature.results
        outs = tuple(out) if isinstance(out, tuple | list) else (out,)
        if len(outs) != len(results):
            raise TypeError(f"out: expected {_count(len(results), 'array')}, got {len(outs)}")
        for i, (spec, array) in enumerate(zip(results, outs, strict=True)):
            name = "out" if len(outs) == 1 else f"out[{i}]"
            if not isinstance(array, np.ndarray):
                raise TypeError(f"{name}: expected an array {spec}, got {_kind(array)}")
            if array.dtype.newbyteorder("=") != numpy_dtype(spec.dtype):
                raise TypeError(f"{name}: expected {spec}, got {spell_array(array)}")
            if not array.flags.writeable:
                raise ValueError(f"{name}: the array is read-only")
            for other in outs[:i]:
                if np.shares_memory(array, other):
                    raise ValueError(f"{name}: shares memory with another array of out")
        return outs

    def _check_out_shapes(self, outs: Sequence[Array], results: Sequence[Array]) -> None:
        for i, (array, result) in enumerate(zip(outs, results, strict=True)):
            if array.shape != result.shape:
                name = "out" if len(outs) == 1 else f"out[{i}]"
                raise ValueError(
                    f"{name}: expected {spell_array(result)}, got {spell_array(array)}"
                )


def dynamic_sizes(signature: Signature, arguments: Sequence[Array]) -> list[int]:
    """Return every `?` of the arguments, in order."""
    return [
        size
        for spec, array in zip(signature.arguments, arguments, strict=True)
        for want, size in zip(spec.shape, array.shape, strict=True)
        if want == DYNAMIC
    ]


def make_results(signature: Signature, sizes: Iterable[int]) -> tuple[Array, ...]:
    """Allocate the results; ``sizes`` are all their `?`, in order."""
    return tuple(
        np.empty(shape, numpy_dtype(spec.dtype))
        for spec, shape in zip(signature.results, result_shapes(signature, sizes), strict=True)
    )


def result_shapes(signature: Signature, sizes: Iterable[int]) -> list[tuple[int, ...]]:
    """Return the shapes of the results; ``sizes`` are all their `?`, in order."""
    found = iter(sizes)
    shapes: list[tuple[int, ...]] = []
    for number, spec in enumerate(signature.results):
        shape = tuple(next(found) if n == DYNAMIC else n for n in spec.shape)
        for axis, size in enumerate(shape):
            if size < 0:
                raise ValueError(f"result {number} would have size {size} along axis {axis}")
        shapes.append(shape)
    return shapes


def _call_site() -> tuple[str, int]:
    """Return file and line of the call site outside of this package."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame.f_code.co_filename.startswith(PACKAGE) and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def _shared(arrays: Sequence[Any]) -> set[int]:
    """Return the numbers of contiguous arrays that overlap another."""
    resident = [id(a) for a in arrays if type(a) is DeviceArray]
    found = {n for n, a in enumerate(arrays) if resident.count(id(a)) > 1} if resident else set()
    begins = (
        (a.__array_interface__["data"][0], a.nbytes, n)
        for n, a in enumerate(arrays)
        if type(a) is not DeviceArray
    )
    last, end = -1, 0  # the earlier array with the largest end
    for begin, bytes, number in sorted(each for each in begins if each[1]):
        if begin < end:
            found.update((last, number))
        if begin + bytes > end:
            last, end = number, begin + bytes
    return found


def _as_array(spec: Tensor, value: Any) -> Array:
    """Return ``value`` as an array; refuse values that are only array-like."""
    if isinstance(value, np.ndarray):
        if isinstance(value, np.ma.MaskedArray):
            raise TypeError(f"{_expected(spec)}, got a masked array; help: {spec.name}.filled(0)")
        return np.asarray(value)
    if isinstance(value, np.generic):
        return np.asarray(value)
    if isinstance(value, bool | int | float) and spec.shape == ():
        return _scalar(spec, value)
    if hasattr(value, "__array__"):
        return np.asarray(value)
    help = ""
    if isinstance(value, bool | int | float | complex | list | tuple):
        help = f"; help: np.asarray({spec.name}, {_spelled(numpy_dtype(spec.dtype))})"
    raise TypeError(f"{_expected(spec)}, got {_kind(value)}{help}")


def _scalar(spec: Tensor, value: Any) -> Array:
    """Return a Python number as a rank-0 array if its kind fits the dtype."""
    kind = DTYPES[spec.dtype].kind
    want = numpy_dtype(spec.dtype)
    takes = {"bool": bool, "float": (float, int), "signed": int, "unsigned": int}[kind]
    if not isinstance(value, takes) or (isinstance(value, bool) and kind != "bool"):
        raise TypeError(f"{_expected(spec)}, got {_kind(value)} {value}")
    if kind in ("signed", "unsigned"):
        limits = np.iinfo(want)
        if not limits.min <= value <= limits.max:
            raise ValueError(f"{_expected(spec)}, got {value}, which it cannot hold")
    with np.errstate(over="ignore"):
        return np.array(value, want)


def _shape_fits(spec: Tensor, array: Any) -> bool:
    return len(spec.shape) == array.ndim and all(
        want in (DYNAMIC, got) for want, got in zip(spec.shape, array.shape, strict=True)
    )


def _reason_to_copy(array: Array) -> str:
    if not array.dtype.isnative:
        return "not in native byte order"
    if not array.flags.c_contiguous:
        return "not contiguous"
    return "" if array.flags.aligned else "not aligned"


def spell_array(array: Array) -> str:
    """Spell the dtype and shape of an array as error messages do.

    >>> spell_array(np.zeros((4, 8)))
    'float64[4, 8]'
    """
    order = "" if array.dtype.isnative else "byte-swapped "
    return order + spell(array.dtype.newbyteorder("=").name, array.shape)


def _expected(spec: Tensor) -> str:
    return f"argument '{spec.name}': expected {spec}"


def _spelled(dtype: np.dtype[Any]) -> str:
    if dtype.name == "bfloat16":
        return "ml_dtypes.bfloat16"
    return "bool" if dtype.name == "bool" else f"np.{dtype.name}"


def _kind(value: Any) -> str:
    return "None" if value is None else type(value).__name__


def _count(n: int, noun: str = "argument") -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


__all__ = ["Entry", "numpy_dtype", "numpy_name", "spell_array"]
