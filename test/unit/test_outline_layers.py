"""Layers that are lowered once give the kernels of the whole program."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

import stepwell as sw
import stepwell.numpy as snp
from stepwell.dialects import kernel
from stepwell.dialects.interpreter import Interpreter
from stepwell.dialects.parsing import parse_module
from stepwell.driver.pass_pipeline import parse
from stepwell.driver.registry import registry
from stepwell.transforms.kernels.same_kernels import structure

LAYERS, ROWS, WIDTH = 3, 40, 32
BEFORE = "canonicalize,cse,decompose,cse"
AFTER = "nd-to-linalg,canonicalize,cse,fuse-elementwise,outline-kernels"


def model(x: Any, mask: Any, *weights: Any) -> Any:
    """Return the result of layers of attention with a norm before it, and a mask."""
    for q, k, w in zip(weights[::3], weights[1::3], weights[2::3], strict=True):
        centred = x - snp.mean(x, axis=1, keepdims=True)
        h = centred / snp.sqrt(snp.mean(centred * centred, axis=1, keepdims=True) + 1e-5)
        scores = (h @ q) @ snp.transpose(h @ k) + (mask - 1.0) * 1e9
        e = snp.exp(scores - snp.max(scores, axis=1, keepdims=True))
        x = x + (e / snp.sum(e, axis=1, keepdims=True)) @ h @ w
    return x


def arguments() -> list[Any]:
    random = np.random.default_rng(0)
    weights = [random.standard_normal((WIDTH, WIDTH), np.float32) / 8 for _ in range(3 * LAYERS)]
    x = random.standard_normal((ROWS, WIDTH), np.float32)
    return [x, np.tril(np.ones((ROWS, ROWS), np.float32)), *weights]


def lowered(text: str, passes: str) -> ModuleOp:
    known = registry()
    module = parse_module(known.context(), text, "layers.mlir")
    for step in parse(passes, known.passes):
        step.run(known.context(), module)
    module.verify()
    return module


def kernels(module: ModuleOp) -> set[Any]:
    return {structure(op) for op in module.ops if isinstance(op, kernel.FuncOp)}


def launches(module: ModuleOp) -> int:
    return sum(isinstance(op, kernel.LaunchOp) for op in module.walk())


def test_kernels_and_results_are_those_of_the_whole_program() -> None:
    given = arguments()
    text = str(sw.jit(model).trace(*given))
    outline = "outline-layers{min_saved=10}"
    layers = lowered(text, f"{BEFORE},{outline}")
    assert sum(op.name == "nd.call" for op in layers.walk()) == LAYERS - 1  # the last has no norm
    found = Interpreter(layers).call("model", given)
    want = Interpreter(lowered(text, "inline-calls")).call("model", given)
    np.testing.assert_allclose(found[0], want[0], rtol=1e-5)
    whole = lowered(text, f"{BEFORE},{AFTER}")
    outlined = lowered(text, f"{BEFORE},{outline},{AFTER},inline-layers")
    assert kernels(outlined) == kernels(whole)
    assert launches(outlined) == launches(whole)
