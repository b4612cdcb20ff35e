"""Prepared weights in the cache: packed once, then mapped at every further start.

Their key is the program and the fingerprints of all given bytes; a fingerprint of the stored file
is checked at every load. The weights of a newly compiled program are stored at once, others when
they are seen a second time, so that weights which change with every start are never written.

A function that is traced again need not copy the arrays it used the last time: if they are
unchanged, its prepared weights are in the cache. `TracedWeights` tracks these arrays.
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
"""Smallest weights that are cached, in bytes: smaller ones are packed as fast as they are found."""
MAX_KEPT_BYTES = 1 << 30
"""Largest weights that are cached, in bytes."""
WRITER = "stepwell-weights"
"""The name of writer threads; the process waits for them before it ends."""
PRINT = "fingerprint"
QUICK = "keyed"
"""The prefix of fingerprints made by the extension."""
SECRET = "secret"
"""The file of the random number that keys the fingerprints of a cache."""
KEY = (8 << 10) + 16
"""The length in bytes of the key that the extension takes."""


def fingerprint(array: Array) -> str:
    """Return a fingerprint of the bytes of a contiguous array, unique in this cache.

    Without the cache's secret, nobody can construct a collision (fingerprint.h).
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
    """Return the fingerprint key of a cache, derived from its random secret."""
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
    """The large arrays that a traced function used, and their fingerprints."""

    place: str = ""
    """A digest of the function's source location and of its arguments."""
    previous: list[str] = field(default_factory=list[str])
    """The fingerprints, in order, of an earlier trace whose weights are in the cache."""
    fingerprints: dict[str, str] = field(default_factory=dict[str, str])
    """The fingerprints in order, by name."""
    sources: dict[str, Array] = field(default_factory=dict[str, Array])
    """Arrays that still belong to the user."""
    uncopied: set[str] = field(default_factory=set[str])
    """The names of the arrays without a copy."""
    same: bool = True
    """Whether all fingerprints so far equal the previous ones."""

    @classmethod
    def of(cls, *about: str) -> TracedWeights:
        """Load the record of a function; ``about`` identifies its source location."""
        traced_weights = cls(digest(*about))
        with suppress(OSError, ValueError, KeyError, TypeError):
            noted = json.loads(traced_weights._notes.read_text())
            if disk_cache().has(WEIGHTS, str(noted["weights"])):
                traced_weights.previous = [str(each) for each in noted["fingerprints"]]
        return traced_weights

    def keeps_uncopied(self, name: str, array: Array, fingerprint_: str) -> bool:
        """Record the next array; return whether no copy of it is needed.

        None is needed if this and all earlier fingerprints equal those of the previous trace.
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
        """Whether the user's array was changed after the function used it."""
        return fingerprint(self.sources[name]) != self.fingerprints[name]

    def note(self, weights: str) -> None:
        """Record that the weights are cached, unless the function changed an array it uses."""
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
        """Delete the record, so that the next trace copies all arrays."""
        with suppress(OSError):
            self._notes.unlink(missing_ok=True)

    @property
    def _notes(self) -> Path:
        return cache_root() / "traces" / f"{self.place}.json"


@dataclass(frozen=True)
class Weights:
    """The weights given to a cached program."""

    key: str
    """The program's key."""
    resources: Mapping[str, Any]
    traced_weights: TracedWeights | None
    compiled: bool
    """Whether the program was compiled in this process."""

    def __call__(
        self, signature: Signature, make: Callable[[], tuple[Array, ...]]
    ) -> tuple[Array, ...]:
        """Return the constants of the program: mapped from the cache, or made by ``make``."""
        wanted = [*signature.constants, *(signature.maker.constants if signature.maker else ())]
        names = list(dict.fromkeys(c.name for c in wanted if c.made is None))
        given = [np.asarray(self.resources[n]) for n in names if n in self.resources]
        if (
            len(given) < len(names)
            or not MIN_KEPT_BYTES <= sum(a.nbytes for a in given) <= MAX_KEPT_BYTES
        ):
            return self._call_if_unchanged(make)
        fingerprints = [self._fingerprint(n, a) for n, a in zip(names, given, strict=True)]
        kinds = [f"{name} {a.dtype} {a.shape}" for name, a in zip(names, given, strict=True)]
        key = digest(self.key, *kinds, *fingerprints)
        damaged = disk_cache().has(WEIGHTS, key)
        if (found := disk_cache().find(WEIGHTS, key)) is not None:
            if (mapped := _mapped(found, signature)) is not None:
                self._note(key)
                return mapped
            remove_folder(found)
        constants = self._call_if_unchanged(make)
        if self.compiled or damaged or _was_requested(key):
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

    def _fingerprint(self, name: str, array: Array) -> str:
        known = self.traced_weights.fingerprints.get(name, "") if self.traced_weights else ""
        if known.startswith(QUICK) or (known and extension_by_now() is None):
            return known
        found = fingerprint(np.ascontiguousarray(array))
        if self.traced_weights is not None and known:  # the extension was not loaded before
            self.traced_weights.fingerprints[name] = found
        return found

    def _call_if_unchanged(self, make: Callable[[], tuple[Array, ...]]) -> tuple[Array, ...]:
        """Return the result of ``make``; fail if an uncopied array has changed."""
        for name in sorted(self.traced_weights.uncopied) if self.traced_weights else ():
            assert self.traced_weights is not None
            if self.traced_weights.changed(name):
                self.traced_weights.forget()
                raise CompileError(
                    Diagnostic(
                        "error",
                        f"the array of '{name}' was changed while a function that uses it was "
                        "traced",
                        help="pass the function a copy of the array that it changes",
                    )
                )
        return make()


def settle() -> None:
    """Wait until all weights that this process is writing are in the cache."""
    for thread in threading.enumerate():
        if thread.name == WRITER:
            thread.join()


def _was_requested(key: str) -> bool:
    """Whether weights were requested before; record the request."""
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
    """Return the weights in a folder; None if the file's fingerprint differs."""
    try:
        mapped = map_constants(folder / CONSTANTS, signature.constants)
        whole = np.memmap(folder / CONSTANTS, np.uint8, "r")
        if fingerprint(whole) == (folder / PRINT).read_text():
            return mapped
    except (OSError, ValueError, CompileError):
        pass
    return None
