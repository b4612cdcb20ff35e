"""What is measured of a machine: kept, rounded, and never in the way."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from stepwell.core.machine import PROPERTIES, Machine, this_machine
from stepwell.runtime import measuring
from stepwell.runtime.measuring import (
    BUDGET,
    MEASURED,
    measure_again,
    place_of,
    read_kept,
    rounded,
    settled,
)
from stepwell.tools.main import main

FIGURES = {"clock": 4000.0, "l3_rate": 99_000.0, "wake": 26_000.0, "fma_ports": 2.1}
KEPT = {"clock": 4096, "fma_ports": 2, "l3_rate": 101_070, "wake": 25_268}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("STEPWELL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(measuring, "measure", lambda machine: dict(FIGURES))
    monkeypatch.setattr(measuring, "is_busy", lambda machine: False)
    measuring.measured.cache_clear()
    yield
    measuring.measured.cache_clear()


def test_it_is_measured_once_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    assert dict(measuring.measured()) == KEPT
    monkeypatch.setattr(measuring, "measure", lambda machine: pytest.fail("again"))
    measuring.measured.cache_clear()
    assert dict(measuring.measured()) == KEPT
    machine = measuring.measured_machine()
    assert (machine.wake, machine.features) == (25_268, this_machine().features)


def test_what_was_measured_on_a_busy_machine_is_measured_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(measuring, "is_busy", lambda machine: True)
    assert measuring.measured()["l3_rate"] == 101_070
    monkeypatch.setattr(measuring, "is_busy", lambda machine: False)
    monkeypatch.setattr(measuring, "measure", lambda machine: {"l3_rate": 200_000.0})
    measuring.measured.cache_clear()
    assert measuring.measured()["l3_rate"] == 202_141
    assert measuring.measured()["wake"] == 25_268  # not measured now, but before


def test_noise_changes_nothing() -> None:
    for by in (0.9, 0.95, 1.05, 1.15):
        assert settled({name: value * by for name, value in FIGURES.items()}, KEPT) == KEPT
    slower = {"l3_rate": 50_000.0, "wake": 90_000.0}
    assert settled(slower, KEPT) == KEPT  # others use the machine
    better = settled({"l3_rate": 150_000.0, "wake": 5000.0}, KEPT)
    assert (better["l3_rate"], better["wake"]) == (155_872, 4871)
    for name in MEASURED:
        for value in (0.3, 1.0, 77.7, 4e6):
            assert rounded(name, rounded(name, value)) == rounded(name, value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "\x00\xff",
        "[" * 100_000,
        '{"format": 1, "busy": false}',
        '{"format": 2, "busy": false, "measured": {}}',
        '{"format": 1, "busy": false, "measured": {"clock": -1}}',
        '{"format": 1, "busy": false, "measured": {"clock": 1e9}}',
        '{"format": 1, "busy": false, "measured": {"clock": true}}',
        '{"format": 1, "busy": false, "measured": {"threads": 5}}',
        '{"format": 1, "busy": false, "measured": {"clock": 999999999999999999999}}',
    ],
    ids=range(12),
)
def test_a_damaged_file_is_measured_anew(text: str) -> None:
    place = place_of(this_machine())
    place.parent.mkdir(parents=True)
    place.write_text(text)
    assert read_kept(place).measured == {}
    assert dict(measuring.measured()) == KEPT
    assert json.loads(place.read_text())["measured"] == KEPT


def test_a_cache_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setattr(measuring, "cache_root", lambda: tmp_path / "file")
    assert dict(measuring.measured()) == KEPT


def test_threads_measure_at_once_and_keep_one_whole_file() -> None:
    machine, found = this_machine(), list[Mapping[str, int]]()
    workers = [
        threading.Thread(target=lambda: found.append(measure_again(machine))) for _ in "12345"
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == [KEPT] * 5
    assert [path.name for path in place_of(machine).parent.iterdir()] == [place_of(machine).name]


def test_what_was_measured_enters_no_compile() -> None:
    before = this_machine()
    measuring.measured()
    assert this_machine() is before
    assert repr(before) == repr(this_machine().override(""))


def test_other_machines_have_files_of_their_own() -> None:
    here = this_machine()
    for other in (here.override("threads=7"), here.override("l3=1M"), here.override("features=x")):
        assert place_of(other) != place_of(here)


def test_without_time_everything_is_assumed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(measuring, "BUDGET", -1.0)
    monkeypatch.setattr(measuring, "limits_code", lambda: None)
    assert measuring.measure(this_machine()) == {}
    assert BUDGET < 1


@pytest.mark.skipif(sys.platform != "linux", reason="limits.c pins its threads as Linux does")
def test_the_real_thing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.undo()
    found = measuring.measure(
        Machine().override(f"l3=1M,l2=256K,cores=1,threads={this_machine().threads}")
    )
    assert {"clock", "l3_rate"} <= found.keys() <= set(MEASURED)
    for name, value in found.items():
        assert PROPERTIES[name].holds(rounded(name, value))
    assert 300 < found["clock"] < 10_000


def test_the_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STEPWELL_MACHINE", raising=False)
    assert main(["machine"]) == 0
    said = capsys.readouterr().out
    assert "25,268 ns" in said and "(measured; assumed" in said and "(read)" in said
    assert main(["machine", "sapphire-rapids,threads=2,l2=3M", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["name"] == "sapphire-rapids"
    assert found["properties"]["l2"] == {"value": 3 << 20, "unit": "bytes", "source": "given"}
    assert found["properties"]["fma_ports"]["source"].startswith("sapphire-rapids.txt: Intel")
    assert found["properties"]["l2_rate"]["value"] == 185_000
    assert main(["machine", "--list"]) == 0
    assert "zen4 " in capsys.readouterr().out
    assert main(["machine", "--measure", "zen4"]) == 1
    assert "only this machine can be measured" in capsys.readouterr().err
    assert main(["machine", "zen9"]) == 1
    assert "there is no machine 'zen9'" in capsys.readouterr().err
