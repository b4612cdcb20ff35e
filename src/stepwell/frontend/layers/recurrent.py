"""Recurrent layers: cells that take one step, and whole sequences. For ``sw.nn``.

Weights are (inputs, gates * hidden) and (hidden, gates * hidden): PyTorch's, transposed. A cell
takes and returns ``(carry, y)`` like a body of `stepwell.lax.scan`. For a sequence, one product
computes the inputs' contribution to all steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stepwell.core.shapes import ShapeError
from stepwell.frontend import elementwise as e
from stepwell.frontend.activations import floats, sigmoid, tanh
from stepwell.frontend.creation import iota, zeros
from stepwell.frontend.lax_control import scan
from stepwell.frontend.layers.dense import dense
from stepwell.frontend.linear_algebra import matmul
from stepwell.frontend.manipulation import moveaxis, reshape
from stepwell.frontend.promotion import INTEGER, cast, lift
from stepwell.frontend.tensor import Tensor

Step = Callable[[Any, Tensor], Any]


def _gates(x: Tensor, number: int) -> list[Tensor]:
    size = x.shape[-1] // number
    return [x[..., k * size : (k + 1) * size] for k in range(number)]


def _check(w_x: Any, w_h: Any, gates: int) -> int:
    """Check the weights' shapes; return the size of the state."""
    own, other = lift(w_h), lift(w_x)
    if own.ndim != 2 or other.ndim != 2 or own.shape[1] != gates * own.shape[0]:
        raise ShapeError(
            f"the weights are (inputs, {gates} * hidden) and (hidden, {gates} * hidden), got "
            f"shapes {other.shape} and {own.shape}"
        )
    if other.shape[1] != own.shape[1]:
        raise ShapeError(f"weights of shapes {other.shape} and {own.shape} do not fit together")
    return own.shape[0]


def _lstm(carry: Any, given: Tensor, w_h: Any) -> Any:
    """Take a step of an LSTM, given the inputs' contribution to the gates."""
    hidden, cell = carry
    into, forget, change, out = _gates(e.add(given, matmul(hidden, w_h)), 4)
    kept = e.multiply(sigmoid(forget), cell)
    cell = e.add(kept, e.multiply(sigmoid(into), tanh(change)))
    return e.multiply(sigmoid(out), tanh(cell)), cell


def _gru(carry: Any, given: Tensor, w_h: Any, bias_h: Any) -> Any:
    own = matmul(carry, w_h)
    own = own if bias_h is None else e.add(own, bias_h)
    (reset, update, change), (r, z, n) = _gates(given, 3), _gates(own, 3)
    fresh = tanh(e.add(change, e.multiply(sigmoid(e.add(reset, r)), n)))
    return e.add(fresh, e.multiply(sigmoid(e.add(update, z)), e.subtract(carry, fresh)))


def _rnn(carry: Any, given: Tensor, w_h: Any, activation: Callable[[Any], Any]) -> Any:
    return activation(e.add(given, matmul(carry, w_h)))


def lstm_cell(carry: Any, x: Any, w_x: Any, w_h: Any, bias: Any = None) -> Any:
    """Take one step of an LSTM.

    carry : (h, c), each (..., H)        x : (..., I)
    w_x : (I, 4 H)        w_h : (H, 4 H)        bias : (4 H,), or None for 0; the gates are in,
        forget, change (tanh) and out, in this order
    returns : ((h, c), h), as a body of `stepwell.lax.scan`
    raises ShapeError : sizes do not agree
    source : PyTorch's `LSTMCell`; Flax's `LSTMCell` carries (c, h)

    >>> import numpy as np, stepwell as sw
    >>> h, w = np.zeros((1, 2), np.float32), np.ones((2, 8), np.float32)
    >>> (h, c), y = sw.jit(sw.nn.lstm_cell)((h, h), np.ones((1, 2), np.float32), w, w)
    >>> y.round(3)
    array([[0.608, 0.608]], dtype=float32)
    """
    _check(w_x, w_h, 4)
    hidden, cell = _lstm(carry, dense(x, w_x, bias), w_h)
    return (hidden, cell), hidden


def gru_cell(carry: Any, x: Any, w_x: Any, w_h: Any, bias: Any = None, bias_h: Any = None) -> Any:
    """Take one step of a gated recurrent unit.

    ``n = tanh(x @ w_xn + b_n + r * (h @ w_hn + b_hn))`` and ``h = (1 - z) * n + z * h``

    carry : (..., H)        x : (..., I)
    w_x : (I, 3 H)        w_h : (H, 3 H)        bias, bias_h : (3 H,), or None for 0; the gates are
        reset, update and change, in this order
    returns : (h, h), as a body of `stepwell.lax.scan`
    raises ShapeError : sizes do not agree
    source : PyTorch's `GRUCell`

    >>> import numpy as np, stepwell as sw
    >>> h, w = np.zeros((1, 2), np.float32), np.ones((2, 6), np.float32)
    >>> sw.jit(sw.nn.gru_cell)(h, np.ones((1, 2), np.float32), w, w)[1].round(3)
    array([[0.115, 0.115]], dtype=float32)
    """
    _check(w_x, w_h, 3)
    found = _gru(carry, dense(x, w_x, bias), w_h, bias_h)
    return found, found


def rnn_cell(
    carry: Any,
    x: Any,
    w_x: Any,
    w_h: Any,
    bias: Any = None,
    activation: Callable[[Any], Any] = tanh,
) -> Any:
    """Return ``activation(x @ w_x + h @ w_h + bias)``: one step of a simple recurrent layer.

    carry : (..., H)        x : (..., I)
    w_x : (I, H)        w_h : (H, H)        bias : (H,), or None for 0
    activation : a function of one array, such as `relu`
    returns : (h, h), as a body of `stepwell.lax.scan`
    raises ShapeError : sizes do not agree
    source : PyTorch's `RNNCell`

    >>> import numpy as np, stepwell as sw
    >>> h, w = np.zeros((1, 2), np.float32), np.ones((2, 2), np.float32)
    >>> sw.jit(sw.nn.rnn_cell)(h, np.ones((1, 2), np.float32), w, w)[1].round(3)
    array([[0.964, 0.964]], dtype=float32)
    """
    _check(w_x, w_h, 1)
    found = _rnn(carry, dense(x, w_x, bias), w_h, activation)
    return found, found


def lstm(
    x: Any,
    w_x: Any,
    w_h: Any,
    bias: Any = None,
    carry: Any = None,
    *,
    reverse: bool = False,
    lengths: Any = None,
    time_axis: int = 0,
) -> Any:
    """Run an LSTM over sequences.

    x : (T, ..., I)        w_x, w_h, bias : as in `lstm_cell`
    carry : the initial (h, c), each (..., H); None is 0
    reverse : go from the last step to the first; the results are in the order of ``x``
    lengths : integers of shape (...,): after its length a sequence keeps its state and yields 0
    time_axis : the axis T in ``x`` and in the result
    returns : ((h, c), ys): the last state, and each step's h, (T, ..., H), as `stepwell.lax.scan`
    raises ShapeError : sizes do not agree
    source : PyTorch's `LSTM`

    >>> import numpy as np, stepwell as sw
    >>> x, w = np.ones((3, 1, 2), np.float32), np.ones((2, 8), np.float32)
    >>> (h, c), ys = sw.jit(sw.nn.lstm)(x, w, w)
    >>> ys.shape, bool((ys[-1] == h).all())
    ((3, 1, 2), True)
    """
    hidden = _check(w_x, w_h, 4)

    def step(state: Any, given: Tensor) -> Any:
        return _lstm(state, given, w_h)

    return _sequence(step, x, w_x, bias, (carry, 2, hidden), (reverse, lengths, time_axis))


def gru(
    x: Any,
    w_x: Any,
    w_h: Any,
    bias: Any = None,
    bias_h: Any = None,
    carry: Any = None,
    *,
    reverse: bool = False,
    lengths: Any = None,
    time_axis: int = 0,
) -> Any:
    """Run a gated recurrent unit over sequences.

    x : (T, ..., I)        w_x, w_h, bias, bias_h : as in `gru_cell`
    carry : the initial (..., H); None is 0
    reverse, lengths, time_axis : as in `lstm`
    returns : (h, ys): the last state, and each step's, (T, ..., H), as `stepwell.lax.scan`
    raises ShapeError : sizes do not agree
    source : PyTorch's `GRU`

    >>> import numpy as np, stepwell as sw
    >>> x, w = np.ones((3, 1, 2), np.float32), np.ones((2, 6), np.float32)
    >>> h, ys = sw.jit(sw.nn.gru)(x, w, w)
    >>> ys.shape, bool((ys[-1] == h).all())
    ((3, 1, 2), True)
    """
    hidden = _check(w_x, w_h, 3)

    def step(state: Any, given: Tensor) -> Any:
        return _gru(state, given, w_h, bias_h)

    return _sequence(step, x, w_x, bias, (carry, 1, hidden), (reverse, lengths, time_axis))


def rnn(
    x: Any,
    w_x: Any,
    w_h: Any,
    bias: Any = None,
    carry: Any = None,
    *,
    activation: Callable[[Any], Any] = tanh,
    reverse: bool = False,
    lengths: Any = None,
    time_axis: int = 0,
) -> Any:
    """Run a simple recurrent layer over sequences.

    x : (T, ..., I)        w_x, w_h, bias, activation : as in `rnn_cell`
    carry : the initial (..., H); None is 0
    reverse, lengths, time_axis : as in `lstm`
    returns : (h, ys): the last state, and each step's, (T, ..., H), as `stepwell.lax.scan`
    raises ShapeError : sizes do not agree
    source : PyTorch's `RNN`

    >>> import numpy as np, stepwell as sw
    >>> x, w = np.ones((3, 1, 2), np.float32), np.ones((2, 2), np.float32)
    >>> h, ys = sw.jit(sw.nn.rnn)(x, w, w)
    >>> ys.shape, bool((ys[-1] == h).all())
    ((3, 1, 2), True)
    """
    hidden = _check(w_x, w_h, 1)

    def step(state: Any, given: Tensor) -> Any:
        return _rnn(state, given, w_h, activation)

    return _sequence(step, x, w_x, bias, (carry, 1, hidden), (reverse, lengths, time_axis))


def _sequence(
    step: Step,
    x: Any,
    w_x: Any,
    bias: Any,
    state: tuple[Any, int, int],
    how: tuple[bool, Any, int],
) -> Any:
    """Run a step over all slices of ``x``.

    state : the initial state or None, the number of its arrays, and their size
    how : whether the scan is reversed, the lengths, and the axis of time
    """
    (start, count, hidden), (reverse, lengths, axis) = state, how
    (value,) = floats(x)
    if value.ndim < 2:
        raise ShapeError(f"sequences are (T, ..., inputs), got shape {value.shape}")
    given = moveaxis(dense(value, w_x, bias), axis, 0)
    time, shape = given.shape[0], (*given.shape[1:-1], hidden)
    if start is None:
        empty = zeros(shape, given.kind)
        start = (empty,) * count if count > 1 else empty
    parts = list(start) if count > 1 else [start]
    first = [_state(part, given, shape) for part in parts]
    ends = None if lengths is None else _lengths(lengths, shape[:-1])

    def body(carry: Any, item: Any) -> Any:
        at, gates = item
        found = step(carry if count > 1 else carry[0], gates)
        new = found if count > 1 else (found,)
        if ends is None:
            return new, new[0]
        going = e.less(at, ends)
        kept = tuple(e.where(going, n, o) for n, o in zip(new, carry, strict=True))
        return kept, e.where(going, new[0], 0)

    numbers = None if ends is None else iota((time,), 0, INTEGER)
    last, ys = scan(body, tuple(first), (numbers, given), reverse=reverse)
    return last if count > 1 else last[0], moveaxis(ys, 0, axis)


def _state(part: Any, given: Tensor, shape: tuple[int, ...]) -> Tensor:
    value = cast(lift(part), given.kind)
    if value.shape != shape:
        raise ShapeError(f"the state of these sequences is {shape}, got shape {value.shape}")
    return value


def _lengths(lengths: Any, shape: tuple[int, ...]) -> Tensor:
    found = lift(lengths)
    if found.kind.kind not in ("signed", "unsigned"):
        raise TypeError(f"lengths are integers, got {found.dtype}")
    if found.shape != shape:
        raise ShapeError(f"the lengths of these sequences are {shape}, got shape {found.shape}")
    return cast(reshape(found, (*shape, 1)), INTEGER)
