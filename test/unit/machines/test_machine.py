"""What is read of a processor, what is assumed, and what a machine's text may say."""

from __future__ import annotations

import pickle
import re
import threading
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path

import pytest

import stepwell as sw
from stepwell.core import host
from stepwell.core.host import cgroup_quota, read_facts
from stepwell.core.known_machines import known_machines, parse
from stepwell.core.machine import (
    PROPERTIES,
    Machine,
    known_machine,
    machine_names,
    machine_of,
    this_machine,
)
from stepwell.core.targets import machine_for

PROCESSORS = sorted(Path(__file__).with_name("processors").glob("*.txt"))


def unpacked(file: Path, root: Path) -> Mapping[str, str]:
    """Write the files that a text holds below a folder; return its other parts."""
    parts = re.split(r"^== (\S+)\n", file.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    found = dict(zip(parts[::2], parts[1::2], strict=True))
    for name, text in found.items():
        if "/" in name:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
    return found


@pytest.mark.parametrize("file", PROCESSORS, ids=lambda path: path.stem)
def test_what_is_read(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "affinity", lambda: {0, 1})
    said = unpacked(file, tmp_path)
    machine = machine_of(read_facts(tmp_path, said["machine"].strip()), threads=2)
    for expected in said["expected"].split():
        name, _, text = expected.partition("=")
        assert getattr(machine, name) == PROPERTIES[name].read(text), expected
    assert machine.features.startswith(said["machine"].strip())
    for name, known in PROPERTIES.items():
        assert known.holds(getattr(machine, name)), name


def test_limits_of_a_container(tmp_path: Path) -> None:
    groups = tmp_path / "sys/fs/cgroup"
    (groups / "a/b").mkdir(parents=True)
    assert cgroup_quota(tmp_path) == host.MOST_CPUS
    (groups / "cpu.max").write_text("max 100000\n")
    assert cgroup_quota(tmp_path) == host.MOST_CPUS
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/a/b\n")
    (groups / "a/cpu.max").write_text("250000 100000\n")
    assert cgroup_quota(tmp_path) == 3
    (groups / "a/b/cpu.max").write_text("nonsense")
    assert cgroup_quota(tmp_path) == 3
    older = groups / "cpu"
    older.mkdir()
    (older / "cpu.cfs_quota_us").write_text("-1\n")
    (older / "cpu.cfs_period_us").write_text("100000\n")
    assert cgroup_quota(tmp_path) == 3
    (older / "cpu.cfs_quota_us").write_text("100000\n")
    assert cgroup_quota(tmp_path) == 1


def test_what_is_written_down_is_whole() -> None:
    """Nothing but these may be left to the defaults in a file of a processor."""
    usual = {
        "name",
        "features",
        "hoist_constants",
        "versions",
        "kind",
        "vector_lanes",
        "vector_unit",
        "signed_dots",
        "l2_write",
    }
    usual |= {"compute_units", "lanes", "local_memory", "transfer", "sockets", "threads_per_core"}
    usual |= {f"l{k}_line" for k in (1, 2, 3)}
    assert len(known_machines()) >= 9
    for name, known in known_machines().items():
        said = {each.partition("=")[0] for each in known.properties}
        if name != "generic" and known_machine(name).kind == "cpu":
            assert PROPERTIES.keys() - usual <= said, name
        assert known.about and known_machine(name).name == name
        assert known_machine(name).fma_rate > 0 and known_machine(name).last_cache > 0


def test_this_machine_is_what_it_was() -> None:
    machine = this_machine()
    assert machine == this_machine() and hash(machine) == hash(this_machine())
    assert pickle.loads(pickle.dumps(machine)) == machine
    found: list[Machine] = []
    workers = [threading.Thread(target=lambda: found.append(this_machine())) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert set(found) == {machine}


def test_a_machine_by_name() -> None:
    here = this_machine()
    there = here.override("zen4, threads=2,l3=16M")
    assert (there.threads, there.l3, there.vector_unit) == (2, 16 << 20, 256)
    assert there.features == here.features  # the instructions that are run stay the host's
    for name in machine_names():
        told = ",".join(
            f"{f.name}={int(v) if isinstance(v, bool) else v}"
            for f in fields(Machine)
            if f.name not in ("name", "features")
            and (v := getattr(known_machine(name), f.name)) != ""
        )
        assert replace(Machine().override(told), name=name) == known_machine(name)


def test_a_target_sees_what_it_can_of_a_machine() -> None:
    assert machine_for("c", "sapphire-rapids").vector_bits == 512
    assert machine_for("opencl", "sapphire-rapids").vector_bits == 256
    assert machine_for("opencl", "sapphire-rapids,vector_bits=512").vector_bits == 512
    assert machine_for("opencl", "h100").compute_units == 132


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("zen5,zen4", "cannot read 'zen4' as a property"),
        ("threads=2,zen4", "cannot read 'zen4' as a property"),
        ("../../etc/passwd", "there is no machine '../../etc/passwd'"),
        ("zen\x004", "there is no machine"),
        ("x" * 10_000, "there is no machine 'xxx"),
        ("zen4,l2=", "cannot read 'l2=' as a property"),
        ("l2=1.5M", "cannot read 'l2=1.5M'"),
        ("threads=2K", "cannot read 'threads=2K'"),
        ("l2=" + "9" * 20, "cannot read 'l2=999"),
        ("clock=0", "a machine with clock=0 cannot be compiled for"),
        ("kind=cpu+device", "a machine with kind=cpu+device cannot be compiled for"),
        ("instructions=avx2+mmx", "a machine with instructions=avx2+mmx cannot"),
        ("l1_line=63", "a machine with l1_line=63 cannot"),
    ],
)
def test_text_that_cannot_be_meant(text: str, said: str) -> None:
    with pytest.raises(sw.CompileError) as caught:
        Machine().override(text)
    found = caught.value.diagnostic
    assert found.message.startswith(said)
    assert found.help and len(found.message) < 200


def test_names_that_are_nearly_meant() -> None:
    for text, help in [("zen44", "zen4"), ("l2_rat=3", "l2_rate"), ("treads=3", "threads")]:
        with pytest.raises(sw.CompileError) as caught:
            Machine().override(text)
        assert help in caught.value.diagnostic.help


def test_a_file_of_a_machine() -> None:
    text = "about = one # two\nfits = A 6 1,2\n\n# a remark\nl2 = 1M  # a manual\n"
    found = parse("x", text)
    assert (found.about, found.fits) == ("one", (("A", "6", "1,2"),))
    assert (found.properties, found.sources) == (("l2=1M",), (("l2", "a manual"),))


def test_what_is_derived() -> None:
    zen4, xeon = (Machine().override(f"{name},threads=2") for name in ("zen4", "sapphire-rapids"))
    assert (zen4.fma_rate, xeon.fma_rate) == (1.0, 2.0)  # the one computes with halves
    assert (zen4.last_cache, xeon.last_cache) == (32 << 20, 2 << 20)  # the other's is far away
    assert zen4.peak(threads=2) == 236.8e9 and xeon.peak(64, threads=2) == 224e9
    assert Machine().override("h100").peak(threads=132) == pytest.approx(66.9e12, rel=1e-3)
    for machine, rates in [(zen4, (230, 200, 56)), (xeon, (370, 56, 31))]:
        sizes = machine.l2 * 2, 32 << 20, 1 << 30
        found = [round(size / machine.seconds(size) / 1e9) for size in sizes]
        assert found == list(rates)  # GB/s of two threads, as measured
    assert Machine().override("h100").seconds(1 << 30) == pytest.approx((1 << 30) / 3e12)
