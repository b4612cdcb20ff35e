"""Weights as a program reads them, kept in the cache: packed once, mapped whenever it starts again.

They are found by the program and by fingerprints of all bytes that were given. What is found is
checked against a fingerprint of its own. Kept are the weights that a program is compiled with,
and others as soon as they are seen a second time: what changes with every start is never written.

A function that is traced again need not copy the arrays that it used the last time: where they
are the same, what it will run with lies in the cache. `TracedWeights` knows which these are.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from stepwell.core.diagnostics import CompileError, Diagnostic
from stepwell.core.files import remove_folder, replacing, write_whole
from stepwell.core.hashing import sha256
from stepwell.core.signature import Signature
from stepwell.runtime.cache import CONSTANTS, WEIGHTS, cache_root, digest, disk_cache
from stepwell.runtime.constants import map_constants, write_constants
from stepwell.runtime.entry import Array
from stepwell.runtime.extension import extension_by_now
from stepwell.runtime.private import is_own_file, make_private

MIN_KEPT_BYTES = 8 << 20
"""Weights of fewer bytes are laid out as fast as they are found in the cache."""
MAX_KEPT_BYTES = 1 << 30
"""Weights of more bytes are not written to the cache."""
WRITER = "stepwell-weights"
"""The name of threads that write; the process does not end before they do."""
PRINT = "fingerprint"
QUICK = "keyed"
"""What fingerprints by the extension begin with."""
SECRET = "secret"
"""The file of the number that fingerprints of a cache are made with."""
KEY = (8 << 10) + 16
"""Bytes of it that the extension takes."""


def fingerprint(array: Array) -> str:
    """Return what tells the bytes of a contiguous array apart from all others, in this cache.

    Nobody who does not know the cache's secret can make two with the same one (fingerprint.h).

    >>> one, other = np.zeros(9, np.uint8), np.zeros(10, np.uint8)
    >>> fingerprint(one) == fingerprint(one.copy()), fingerprint(one) == fingerprint(other)
    (True, False)
    """
    data = array.reshape(-1).view(np.uint8).data
    if (extension := extension_by_now()) is None:
        return f"sha256 {sha256(data).hexdigest()}"
    return f"{QUICK} {digest(extension.fingerprint(data, _key(cache_root())), str(array.nbytes))}"


@cache
def _key(root: Path) -> bytes:
    """Return the key of fingerprints in a cache, made of a number that is drawn once for it."""
    place = root / SECRET
    secret = os.urandom(32)
    with suppress(OSError):
        make_private(root)
        if not place.exists():
            with replacing(place, anew=True) as file:
                file.touch(0o600)
                file.write_bytes(secret)
        if is_own_file(place):
            secret = place.read_bytes()
    return import_module("hashlib").shake_256(secret).digest(KEY)


@dataclass
class TracedWeights:
    """What a traced function used: the fingerprints of its large arrays, and these themselves."""

    place: str = ""
    """A digest of where the function stands and what it is called with."""
    previous: list[str] = field(default_factory=list[str])
    """The fingerprints in order, of a trace of it whose weights are in the cache."""
    fingerprints: dict[str, str] = field(default_factory=dict[str, str])
    """The fingerprints in order, by name."""
    sources: dict[str, Array] = field(default_factory=dict[str, Array])
    """Arrays that are the user's still."""
    uncopied: set[str] = field(default_factory=set[str])
    """Names of those of which there is no copy."""
    same: bool = True
    """Whether all so far is as it was."""

    @classmethod
    def of(cls, *about: str) -> TracedWeights:
        """Find what is known of a function; ``about`` says where it stands."""
        traced_weights = cls(digest(*about))
        with suppress(OSError, ValueError, KeyError, TypeError):
            noted = json.loads(traced_weights._notes.read_text())
            if disk_cache().has(WEIGHTS, str(noted["weights"])):
                traced_weights.previous = [str(each) for each in noted["fingerprints"]]
        return traced_weights

    def keeps_uncopied(self, name: str, array: Array, fingerprint_: str) -> bool:
        """Note the next array; return whether a copy would never be used.

        That is where it had this fingerprint the last time, as had all before it.
        """
        number = len(self.fingerprints)
        self.fingerprints[name] = fingerprint_
        self.sources[name] = array
        known = self.same and number < len(self.previous) and self.previous[number] == fingerprint_
        self.same = known
        if known:
            self.uncopied.add(name)
        return known

    def changed(self, name: str) -> bool:
        """Whether the user's array is no longer what it was when the function used it."""
        return fingerprint(self.sources[name]) != self.fingerprints[name]

    def note(self, weights: str) -> None:
        """Write down that what this function uses is kept; not where it changes what it uses."""
        fingerprints = list(self.fingerprints.values())
        if (
            self.place
            and fingerprints != self.previous
            and not any(map(self.changed, self.sources))
        ):
            with suppress(OSError):
                make_private(self._notes.parent)
                noted = {"weights": weights, "fingerprints": fingerprints}
                write_whole(self._notes, json.dumps(noted))

    def forget(self) -> None:
        """Copy all arrays the next time."""
        with suppress(OSError):
            self._notes.unlink(missing_ok=True)

    @property
    def _notes(self) -> Path:
        return cache_root() / "traces" / f"{self.place}.json"


@dataclass(frozen=True)
class Weights:
    """The weights given for a program of the cache, and what is known of them."""

    key: str
    """The program's."""
    resources: Mapping[str, Any]
    traced_weights: TracedWeights | None
    compiled: bool
    """Whether the program was compiled just now."""

    def __call__(
        self, signature: Signature, make: Callable[[], tuple[Array, ...]]
    ) -> tuple[Array, ...]:
        """Return the constants of the program: mapped, or else those that ``make`` returns."""
        wanted = [*signature.constants, *(signature.maker.constants if signature.maker else ())]
        names = list(dict.fromkeys(c.name for c in wanted if c.made is None))
        given = [np.asarray(self.resources[n]) for n in names if n in self.resources]
        if (
            len(given) < len(names)
            or not MIN_KEPT_BYTES <= sum(a.nbytes for a in given) <= MAX_KEPT_BYTES
        ):
            return self._made(make)
        fingerprints = [self._print(n, a) for n, a in zip(names, given, strict=True)]
        kinds = [f"{name} {a.dtype} {a.shape}" for name, a in zip(names, given, strict=True)]
        key = digest(self.key, *kinds, *fingerprints)
        damaged = disk_cache().has(WEIGHTS, key)
        if (found := disk_cache().find(WEIGHTS, key)) is not None:
            if (mapped := _mapped(found, signature)) is not None:
                self._note(key)
                return mapped
            remove_folder(found)
        constants = self._made(make)
        if self.compiled or damaged or _seen(key):
            thread = threading.Thread(target=self._keep, args=(key, constants), name=WRITER)
            thread.start()
        return constants

    def _keep(self, key: str, constants: tuple[Array, ...]) -> None:
        size = sum(a.nbytes for a in constants)
        if size <= MAX_KEPT_BYTES and disk_cache().offer(
            WEIGHTS, key, _writing(constants), 2 * size
        ):
            self._note(key)

    def _note(self, key: str) -> None:
        if self.traced_weights is not None:
            self.traced_weights.note(key)

    def _print(self, name: str, array: Array) -> str:
        known = self.traced_weights.fingerprints.get(name, "") if self.traced_weights else ""
        if known.startswith(QUICK) or (known and extension_by_now() is None):
            return known
        found = fingerprint(np.ascontiguousarray(array))
        if self.traced_weights is not None and known:  # the extension was not there yet
            self.traced_weights.fingerprints[name] = found
        return found

    def _made(self, make: Callable[[], tuple[Array, ...]]) -> tuple[Array, ...]:
        """Return what ``make`` does, unless an array of which there is no copy has changed."""
        for name in sorted(self.traced_weights.uncopied) if self.traced_weights else ():
            assert self.traced_weights is not None
            if self.traced_weights.changed(name):
                self.traced_weights.forget()
                raise CompileError(
                    Diagnostic(
                        "error",
                        f"the array of '{name}' was changed while a function that uses it was "
                        "traced",
                        help="give the function a copy of what it changes",
                    )
                )
        return make()


def settle() -> None:
    """Wait until all weights of this process that are being written lie in the cache."""
    for thread in threading.enumerate():
        if thread.name == WRITER:
            thread.join()


def _seen(key: str) -> bool:
    """Whether weights were asked for before; they have been from now on."""
    if disk_cache().find("seen", key) is not None:
        return True
    disk_cache().offer("seen", key, lambda folder: None, 0)
    return False


def _writing(constants: tuple[Array, ...]) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        write_constants(folder / CONSTANTS, constants)
        mapped = np.memmap(folder / CONSTANTS, np.uint8, "r")
        (folder / PRINT).write_text(fingerprint(mapped))

    return write


def _mapped(folder: Path, signature: Signature) -> tuple[Array, ...] | None:
    """Return the weights in a folder; None where they are not what was written."""
    try:
        mapped = map_constants(folder / CONSTANTS, signature.constants)
        whole = np.memmap(folder / CONSTANTS, np.uint8, "r")
        if fingerprint(whole) == (folder / PRINT).read_text():
            return mapped
    except (OSError, ValueError, CompileError):
        pass
    return None
