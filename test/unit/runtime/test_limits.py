"""What limits.c measures."""

from __future__ import annotations

import platform
import re
import subprocess

import pytest

from stepwell.runtime.limits import SOURCE
from stepwell.runtime.toolchain import find_compiler

CHAINS = 12
"""Chains of multiply-adds that `FMA` counts."""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="reads x86 instructions")
def test_no_chain_of_multiply_adds_is_computed_by_the_compiler() -> None:
    command = [*find_compiler().command, "-O2", "-mfma", "-pthread", "-S", "-o", "-", str(SOURCE)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert (found := re.search(r"^fuse\S*:\n(.*?)^\s*ret", text, re.MULTILINE | re.DOTALL))
    assert found[1].count("vfmadd") == CHAINS
