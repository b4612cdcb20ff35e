"""The parts of the benchmark that need no peer: statistics, the page, references, a process."""

from __future__ import annotations

import sys
from pathlib import Path

import against
import install
import numpy as np
import pytest
from measuring import Batch, Outcome, best, geometric_mean, spell_seconds
from processes import Gone, Process
from report import Line, page
from workloads import WORKLOADS, chosen


def outcome(peer: str, *seconds: float, waited: float = 0.0, others: float = 0.0) -> Outcome:
    batches = tuple(Batch(s, s, waited, others) for s in seconds)
    return Outcome(peer, batches, threads=1, compile=0.5)


def test_a_figure_is_the_median_of_the_rounds() -> None:
    assert outcome("a", 1.0, 9.0, 2.0, 3.0, 2.0).seconds == 2.0


def test_rounds_that_differ_are_noisy() -> None:
    assert outcome("a", 1.0, 1.0, 1.0, 1.0, 1.0, 1.01, 9.0).mark == ""
    assert outcome("a", 1.0, 1.2, 1.4, 1.6, 1.8).mark == "~"


def test_threads_that_wait_are_noisy_and_others_disturb() -> None:
    assert outcome("a", 1.0, 1.0, waited=0.2).mark == "~"
    assert outcome("a", 1.0, 1.0, waited=0.2, others=0.5).mark == "!"
    assert outcome("a", 1.0, 1.0, others=0.5).mark == ""


def test_only_what_is_right_is_best() -> None:
    wrong = Outcome("wrong", (Batch(0.1, 0.1, 0, 0),), correct=False)
    failed = Outcome("failed", problem="failed: crashed")
    assert best([wrong, failed, outcome("slow", 3.0), outcome("fast", 2.0)]) == outcome("fast", 2.0)
    assert best([wrong, failed]) is None


def test_the_geometric_mean() -> None:
    assert geometric_mean([0.5, 2.0, 1.0]) == pytest.approx(1.0)
    assert geometric_mean([]) == 1.0


@pytest.mark.parametrize(
    "seconds, spelled",
    [(1.25, "1.25 s"), (0.0999, "99.9 ms"), (1e-3, "1.00 ms"), (4.2e-7, "0.420 µs")],
)
def test_times_have_three_digits(seconds: float, spelled: str) -> None:
    assert spell_seconds(seconds) == spelled


def test_the_page() -> None:
    product = {
        "stepwell": outcome("stepwell", 1e-3, 1e-3),
        "stepwell-constants": outcome("stepwell-constants", 5e-4, 5e-4),
        "numpy": outcome("numpy", 2e-3, 2e-3),
        "jax": outcome("jax", 1e-3, 1e-3, waited=0.2),
    }
    training = {
        "stepwell": Outcome("stepwell", problem="unsupported: needs gradients"),
        "stepwell-constants": Outcome("stepwell-constants", problem="unsupported: no weights"),
        "numpy": outcome("numpy", 2e-3),
    }
    lines = {1: [Line("product", product, 4e-4), Line("training", training)]}
    ours = ("stepwell", "stepwell-constants")
    text = page(lines, ours, "About.", ["1 thread: 100 GFLOP/s"], {"numpy": "2.0"})
    assert "| product | 1.00 ms | jax | 1.00 ms~ | 1.00 | 0.40 | 0.50 s |" in text
    assert "| product, constant weights | 500 µs | jax | 1.00 ms~ | 0.50 | 0.80 | 0.50 s |" in text
    assert "| training | unsupported | numpy | 2.00 ms |  |  |  |" in text
    assert "training, constant weights" not in text
    assert "| geometric mean of 1 | | | | 1.00 | | |" in text
    assert "| geometric mean of 1, constant weights | | | | 0.50 | | |" in text
    assert "| product | 2.00 ms | 1.00 ms~ |" in text
    assert "* stepwell: training: unsupported: needs gradients" in text


def test_a_page_without_peers() -> None:
    lines = {2: [Line("product", {"stepwell": outcome("stepwell", 1e-3)}, 4e-4)]}
    text = page(lines, ("stepwell",), "About.", [], {})
    assert "| product | 1.00 ms |  |  |  | 0.40 | 0.50 s |" in text
    assert "geometric mean" not in text


def test_workloads_are_chosen_by_pattern() -> None:
    names = [w.name for w in chosen("gemm_1*,call_*")]
    assert names == ["gemm_128", "gemm_1024", "call_add8"]
    assert len(chosen("*")) == len(WORKLOADS)


def test_the_reference_counts_work_and_finds_errors(tmp_path: Path) -> None:
    workload = WORKLOADS["gemm_128"]
    made = workload.reference(tmp_path)
    again = workload.reference(tmp_path)
    assert (made.flops, made.bytes) == (again.flops, again.bytes) == (2 * 128**3, 12 * 128**2)
    (right,) = again.results
    assert right.dtype == np.float64
    assert again.error([right.astype(np.float32)]) < 1e-6
    assert again.error([right * 1.01]) == pytest.approx(0.01)
    assert again.error([right[:1]]) == again.error([]) == float("inf")


def test_integers_must_be_the_same(tmp_path: Path) -> None:
    reference = WORKLOADS["power100_i32"].reference(tmp_path)
    (right,) = reference.results
    assert reference.error([right]) == 0
    assert reference.error([right + 1]) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_process_prepares_measures_and_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPWELL_BENCH", str(tmp_path))
    process = Process("stepwell-constants", 1, tmp_path / "run")
    try:
        assert process.ask(60, do="prepare", workload="call_add8") == {"unsupported": "no weights"}
        process.stop()
        process = Process("stepwell", 1, tmp_path / "run")
        said = process.ask(60, do="prepare", workload="call_add8")
        assert said["correct"] and said["error"] < 1e-6
        batch = Batch(**process.ask(60, do="batch", seconds=0.01))
        assert 0 < batch.least <= batch.seconds < 1
        with pytest.raises(Gone, match="no answer in 0 s"):
            process.ask(0.0, do="batch", seconds=0.5)
    finally:
        process.stop()


def test_a_peer_that_is_not_there(tmp_path: Path) -> None:
    process = Process("jax", 1, tmp_path, pythons={"jax": str(tmp_path / "python")})
    with pytest.raises(Gone, match="make bench-peers PEERS=jax"):
        process.ask(1, do="forget")


def test_asking_for_help_installs_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install, "install", lambda name: pytest.fail(name))
    with pytest.raises(SystemExit):
        install.main(["--help"])
    assert "an environment, or all" in capsys.readouterr().out
    assert install.main(["nothing"]) == 1
    assert "no such environment: nothing" in capsys.readouterr().out


def pair(name: str, base: float, ours: float) -> against.Pair:
    sides = [Batch(base, base, 0.0, 0.0)] * 3, [Batch(ours, ours, 0.0, 0.0)] * 3
    return against.Pair(against.Row(name, "stepwell", "worker.py", {}), sides)


def test_what_is_slower_than_another_commit_is_named() -> None:
    pairs = [pair("slow", 1.0, 1.05), pair("same", 1.0, 1.02), pair("fast", 1.0, 0.9)]
    said, fine = against.summary(pairs, least=False, within=0.03)
    assert not fine
    assert said.splitlines() == [
        "0.988 of the base's time: geometric mean of 3",
        "1 slower by more than 3%: slow 1.050",
        "1 faster by more than 3%: fast 0.900",
    ]
    assert pairs[0].spelled(least=True, within=0.03).split()[-1] == "slower"
    assert against.summary(pairs[1:], least=True, within=0.03)[1]


def test_what_is_not_right_any_more_is_named() -> None:
    lost = against.Pair(against.rows_of("gemm_128", "")[0], problem="wrong: error 1")
    said, fine = against.summary([lost], least=False, within=0.03)
    assert (said.splitlines()[-1], fine) == ("not right: gemm_128: wrong: error 1", False)
    assert [row.name for row in against.rows_of("", "l*,nbody")] == [
        "lattice_boltzmann",
        "lcs",
        "levinson",
        "life",
        "lu",
        "ludcmp",
        "nbody",
    ]
