"""The parts of the benchmark of training that need no peer: tasks, how far off, the page."""

from __future__ import annotations

import numpy as np
import pytest
from gradients import Timed, backward, ops_table
from gradients_rows import REASONS, rows
from measuring import Batch, Outcome
from reading import parsed
from training.tasks import TASKS, chosen
from training_bench import Line, Trained, page

from stepwell.dialects import nd


def trained(peer: str, seconds: float, memory: float) -> Trained:
    outcome = Outcome(peer, (Batch(seconds, seconds, 0.0, 0.0),))
    return Trained(outcome, cold=4.0, warm=0.2, memory=memory)


def test_every_process_has_the_same_data() -> None:
    for task in TASKS.values():
        if not task.name.startswith(("resnet", "encoder")):  # these take a while
            for first, again in zip(task.data(), task.data(), strict=True):
                assert all(np.array_equal(first[k], again[k]) for k in first | again)
    assert [t.name for t in chosen("mlp*,lstm*")] == ["mlp_b64", "lstm_t100_h256_b16"]


def test_errors_are_told_in_parts_of_the_way() -> None:
    task = TASKS["lenet_b64"]
    start, _, _ = task.data()
    right = {k: v.astype(np.float64) + 1 for k, v in start.items()}
    assert task.error(right, right) == 0
    assert task.error(start, right) == pytest.approx(1)
    assert task.error({k: v + 0.1 for k, v in right.items()}, right) == pytest.approx(0.1)
    assert task.error({k: v * np.nan for k, v in right.items()}, right) == float("inf")


def test_the_page_compares_with_the_fastest_and_with_the_leanest() -> None:
    peers = {
        "stepwell": trained("stepwell", 1e-3, 5.0),
        "torch": trained("torch", 2e-3, 9.0),
        "jax": trained("jax", 4e-3, 7.0),
    }
    failed = Outcome("stepwell", problem="failed: RuntimeError: no")
    lines = [
        Line("mlp_b64", peers),
        Line("lstm_t100_h256_b16", {**peers, "stepwell": Trained(failed)}),
    ]
    text = page({2: lines}, ("stepwell", "torch", "jax"), "About.")
    first = "sgd | 1.00 ms | torch | 2.00 ms | 0.50 | 5 MB | 7 MB (jax) | 4.00 s | 0.20 s |"
    assert f"| mlp_b64 | {first}" in text
    assert "| geometric mean of 1 | | | | | 0.50 |" in text
    assert "* stepwell: lstm_t100_h256_b16: failed: RuntimeError: no" in text


def test_every_op_has_its_backward_timed_or_a_reason() -> None:
    excused = {f"nd.{name}" for names in REASONS.values() for name in names.split()}
    timed = {row.op for row in rows()}
    assert not excused & timed
    assert excused | timed == {op.name for op in nd.OPS}


def test_rows_and_their_derivatives_are_programs() -> None:
    for row in rows():
        parsed(row.module("f32") + backward(row).replace("@main", "@backward"))


def test_slow_derivatives_are_told() -> None:
    fast, slow = Timed("nd.fast", 1e-4, 2e-4, 1e-5, 1), Timed("nd.slow", 1e-4, 5e-4, 1e-5, 2)
    text = "\n".join(ops_table([fast, slow, Timed("nd.none", 0.0, 0.0, 0.0, 0, "no gradient")]))
    assert "2 rows, 1 above 3." in text
    assert "* `nd.slow` (5.0)" in text
    assert "* `nd.none`: not measured: no gradient" in text
