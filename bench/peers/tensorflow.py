"""TensorFlow: `tf.function`, and the same compiled by XLA; images lie channels last."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np
import tensorflow as tf
from ops import Array, Ops, Unsupported
from workloads import RATE, Arrays, Workload, as_tuple

from peers import Call, Peer


class TensorflowOps(Ops):
    """The functions of TensorFlow."""

    def matmul(self, x: Array, y: Array) -> Array:
        return tf.matmul(x, y)

    def relu(self, x: Array) -> Array:
        return tf.nn.relu(x)

    def relu6(self, x: Array) -> Array:
        return tf.nn.relu6(x)

    def gelu(self, x: Array, by_tanh: bool = False) -> Array:
        return tf.nn.gelu(x, approximate=by_tanh)

    def softmax(self, x: Array) -> Array:
        return tf.nn.softmax(x)

    def logsumexp(self, x: Array) -> Array:
        return tf.reduce_logsumexp(x, -1)

    def layer_norm(self, x: Array, scale: Array, shift: Array) -> Array:
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        return tf.nn.batch_normalization(x, mean, variance, shift, scale, 1e-5)

    def total(self, x: Array) -> Array:
        return tf.reduce_sum(x)

    def reshape(self, x: Array, shape: Sequence[int]) -> Array:
        return tf.reshape(x, shape)

    def transpose(self, x: Array, axes: Sequence[int]) -> Array:
        return tf.transpose(x, axes)

    def conv(
        self, x: Array, w: Array, b: Array, stride: int = 1, padding: int = 0, groups: int = 1
    ) -> Array:
        edge = [padding, padding]
        if groups == 1:
            y = tf.nn.conv2d(x, w, stride, [[0, 0], edge, edge, [0, 0]])
        elif stride == 1 and w.shape[0] == 2 * padding + 1:
            each = tf.transpose(w, (0, 1, 3, 2))
            y = tf.nn.depthwise_conv2d(x, each, [1, 1, 1, 1], "SAME")
        else:
            raise Unsupported("a depthwise convolution that changes the size of the image")
        return tf.nn.bias_add(y, b)

    def max_pool(self, x: Array, size: int, stride: int, padding: int) -> Array:
        edge = [padding, padding]
        padded = tf.pad(x, [[0, 0], edge, edge, [0, 0]], constant_values=x.dtype.min)
        return tf.nn.max_pool2d(padded, size, stride, "VALID")

    def image_mean(self, x: Array) -> Array:
        return tf.reduce_mean(x, (1, 2))

    def lstm(self, x: Array, wx: Array, wh: Array, b: Array) -> Array:
        steps, hidden = x.shape[0], wh.shape[0]
        zero = tf.zeros([1, hidden])
        rows = tf.matmul(x, wx) + b
        states = tf.TensorArray(tf.float32, steps, element_shape=[1, hidden])

        def step(t: Array, h: Array, c: Array, states: Any) -> Any:
            i, f, g, o = tf.split(rows[t][None] + tf.matmul(h, wh), 4, axis=1)
            c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
            h = tf.sigmoid(o) * tf.tanh(c)
            return t + 1, h, c, states.write(t, h)

        first = (tf.constant(0), zero, zero, states)
        last = tf.while_loop(lambda t, *_: t < steps, step, first, maximum_iterations=steps)
        return tf.reshape(last[3].stack(), [steps, hidden])

    def jacobi(self, u: Array, sweeps: int) -> Array:
        def sweep(k: Array, u: Array) -> Any:
            mean = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
            inner = tf.concat([u[1:-1, :1], mean, u[1:-1, -1:]], 1)
            return k + 1, tf.concat([u[:1], inner, u[-1:]], 0)

        first = (tf.constant(0), u)
        return tf.while_loop(lambda k, _: k < sweeps, sweep, first, maximum_iterations=sweeps)[1]

    def identity(self, n: int, like: Array) -> Array:
        return tf.eye(n, dtype=like.dtype)

    def cross_entropy(self, x: Array, shares: Array) -> Array:
        return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(shares, x))


class Main(Peer):
    """TensorFlow; weights are constants of the function, as in a saved model."""

    version = tf.__version__

    def __init__(self, threads: int, variant: str) -> None:
        super().__init__(threads, variant)
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(1)

    def load(self, workload: Workload, weights: Arrays, inputs: Arrays) -> Any:
        def put(array: Any, axes: Sequence[int]) -> Array:
            array = array.transpose(axes) if array.ndim == 4 else array
            return tf.constant(np.ascontiguousarray(array))

        filters = {k: put(v, (2, 3, 1, 0)) for k, v in weights.items()}
        return filters, {k: put(v, (0, 2, 3, 1)) for k, v in inputs.items()}

    def compile(self, workload: Workload, data: Any) -> Mapping[str, Call]:
        weights, inputs = data
        names, given = list(inputs), list(inputs.values())
        if workload.loss is not None:
            return {"": self._training(workload, weights, inputs)}
        model = self._made(lambda *x: workload.model(TensorflowOps(), weights, dict(zip(names, x))))
        return {"": lambda: model(*given)}

    def arrays(self, result: Any) -> list[Array]:
        found = [np.asarray(a) for a in as_tuple(result)]
        return [a.transpose(0, 3, 1, 2) if a.ndim == 4 else a for a in found]

    def _made(self, function: Any) -> Any:
        return tf.function(function, jit_compile=True if self.variant == "xla" else None)

    def _training(self, workload: Workload, weights: Arrays, inputs: Arrays) -> Call:
        present = {k: tf.Variable(w) for k, w in weights.items()}

        def step() -> Array:
            with tf.GradientTape() as tape:
                value = workload.loss(TensorflowOps(), present, inputs)
            variables = list(present.values())
            for variable, slope in zip(variables, tape.gradient(value, variables)):
                variable.assign_sub(RATE * slope)
            return value

        compiled = self._made(step)
        return lambda: (compiled(), *present.values())
