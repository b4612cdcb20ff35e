"""The disk cache: folders named by a digest of their inputs, published atomically.

An entry is built in a private folder and renamed to its place, so that two processes that build the
same entry do not interfere. It has a digest of its files; an entry that does not match its digest
is rebuilt. If the cache cannot be written, entries go to a temporary folder of this process, with
one warning.

Of weights only the size is checked here: they are large, and `weights` has a faster check.

Entries contain code that is executed: a cache, entry or file that other users can write is not used
(`private`), and folders are created for this user only.
"""

from __future__ import annotations

import atexit
import errno
import logging
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path

from stepwell.core.files import remove_folder
from stepwell.core.hashing import blake2b
from stepwell.runtime.private import MODE, forbids_code, is_own_entry, make_private, why_shared

LOG = logging.getLogger("stepwell")
DIGEST = "digest"
WEIGHTS = "weights"
CONSTANTS = "constants.bin"
"""The file of weights."""
LIMIT = 1 << 30
WEIGHTS_LIMIT = 2 << 30
ENTRY = 100
"""Bytes counted for an entry in addition to its files."""
SWEEP_EVERY = 60.0
"""Minimum seconds between two sweeps."""
SWEEP_LATEST = 3600.0
"""Seconds after which a sweep is due, however long the last one took."""
SWEEP_SHARE = 0.005
"""The maximum share of time that sweeps take before `SWEEP_LATEST`."""
ABANDONED_AFTER = 24 * 3600.0


def digest(*parts: str | bytes) -> str:
    """Return a key of ``parts``; different lists of parts have different keys."""
    whole = blake2b(digest_size=20)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        whole.update(len(data).to_bytes(8, "little") + data)
    return whole.hexdigest()[:40]


@dataclass
class Cache:
    """Entries below ``root``, of at most ``limit`` bytes (least recently used are removed first).

    weights_limit : a separate limit for weights, which never displace other entries
    """

    root: Path
    limit: int = LIMIT
    weights_limit: int = WEIGHTS_LIMIT
    _private: Path | None = field(default=None, init=False)

    def find(self, kind: str, key: str) -> Path | None:
        """Return the folder of an existing, undamaged entry."""
        for root in self._roots():
            place = root / kind / key
            if _is_valid(place):
                _touch(place)
                return place
        return None

    def has(self, kind: str, key: str) -> bool:
        """Whether an entry exists; it may be damaged."""
        return any(os.path.isdir(root / kind / key) for root in self._roots())

    def offer(self, kind: str, key: str, build: Callable[[Path], None], room: int) -> bool:
        """Publish an optional entry that ``build`` fills; return whether it succeeded.

        room : bytes that must be free on the disk
        """
        try:
            make_private(self.root)
            if room and import_module("shutil").disk_usage(self.root).free < room:
                return False
            self._publish(self.root, kind, key, build)
        except OSError as error:
            LOG.info("nothing kept at %s: %s", self.root, error.strerror or error)
            return False
        return True

    def lacks(self, kind: str) -> bool:
        """Whether no entry of this kind was ever written."""
        return not any(os.path.exists(root / kind) for root in self._roots())

    def fetch(self, kind: str, key: str, build: Callable[[Path], None]) -> Path:
        """Return the folder of an entry; ``build`` fills it if it is missing."""
        if (found := self.find(kind, key)) is not None:
            return found
        if self._private is None:
            try:
                return self._publish(self.root, kind, key, build)
            except OSError as error:
                LOG.warning(
                    "cannot write the cache at %s (%s); using a temporary one for this process. "
                    "Set STEPWELL_CACHE to a folder that can be written.",
                    self.root,
                    error.strerror or error,
                )
                self._private = _temporary()
        return self._publish(self._private, kind, key, build)

    def _roots(self) -> list[Path]:
        return [self.root] + ([self._private] if self._private else [])

    def _publish(self, root: Path, kind: str, key: str, build: Callable[[Path], None]) -> Path:
        place = root / kind / key
        make_private(place.parent)
        make_private(root / "tmp")
        work = Path(import_module("tempfile").mkdtemp(dir=root / "tmp"))
        try:
            build(work)
            (work / DIGEST).write_text(_sums(work, place))
            _move(work, place)
        finally:
            remove_folder(work)
        self._sweep_sometimes(root)
        return place

    def _sweep_sometimes(self, root: Path) -> None:
        stamp = root / "swept"
        with suppress(OSError, ValueError):
            took = float(stamp.read_text() or 0)
            wait = min(max(SWEEP_EVERY, took / SWEEP_SHARE), SWEEP_LATEST)
            if time.time() - stamp.stat().st_mtime < wait:
                return
        stamp.touch()  # so that other processes do not sweep meanwhile
        start = time.perf_counter()
        self.sweep()
        stamp.write_text(f"{time.perf_counter() - start:.3f}")

    def sweep(self) -> None:
        """Remove the least recently used entries above the limits, and abandoned builds."""
        kinds = [kind.name for kind in _folders(self.root)]
        weights, others = [WEIGHTS] * (WEIGHTS in kinds), [k for k in kinds if k != WEIGHTS]
        for some, limit in ((weights, self.weights_limit), (others, self.limit)):
            entries = [
                (_used(entry), _size(entry), kind == "tmp", entry.path)
                for kind in some
                for entry in _folders(self.root / kind)
            ]
            self._sweep_down(entries, limit)

    def _sweep_down(self, entries: list[tuple[float, int, bool, str]], limit: int) -> None:
        now = time.time()
        total = sum(size for _, size, _, _ in entries)
        for used, size, building, place in sorted(entries):
            if (building and now - used > ABANDONED_AFTER) or (not building and total > limit):
                remove_folder(Path(place))
                total -= size


@cache
def disk_cache() -> Cache:
    """Return the cache of this user: STEPWELL_CACHE, or `stepwell` in the XDG cache folder."""
    return Cache(cache_root())


def cache_root() -> Path:
    """Return the folder of this user's cache, or a temporary folder if that one is not safe."""
    return _trusted(_default_root())


@cache
def _trusted(root: Path) -> Path:
    """Return ``root``, or a private temporary folder if ``root`` cannot be used.

    That is so if others could write it, or if code in it may not run.
    """
    with suppress(OSError):  # fetching an entry reports that it cannot be written
        make_private(root)
    try:
        why = why_shared(root)
    except OSError as error:
        why = f"{root} leads nowhere ({error.strerror})"
    if not why and forbids_code(root):
        LOG.warning(
            "the cache at %s is on a file system that lets no code run (noexec); using a temporary "
            "one for this process. Set STEPWELL_CACHE to a folder elsewhere.",
            root,
        )
        return _temporary()
    if not why:
        if not os.environ.get("STEPWELL_CACHE"):  # older versions made it readable by others
            with suppress(OSError):
                root.chmod(MODE)
        return Path(os.path.realpath(root))
    LOG.warning(
        "nothing is loaded from the cache at %s, for others could put code into it: %s. Using a "
        "temporary one for this process. Close that folder to others (chmod go-w), or set "
        "STEPWELL_CACHE to one that only you can write.",
        root,
        why,
    )
    return _temporary()


def _temporary() -> Path:
    """Return a new folder that is deleted when this process ends."""
    folder = Path(import_module("tempfile").mkdtemp(prefix="stepwell-"))
    atexit.register(remove_folder, folder)
    return folder


def _default_root() -> Path:
    if asked := os.environ.get("STEPWELL_CACHE"):
        return Path(asked).expanduser().absolute()
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "stepwell"
    try:
        return Path.home() / ".cache" / "stepwell"
    except RuntimeError:
        return Path(import_module("tempfile").gettempdir()) / f"stepwell-{os.getuid()}"


def _sums(folder: Path, place: Path) -> str:
    """Return the entry's name, and a line per file: its digest (for weights its size) and name."""
    names = sorted(p.name for p in folder.iterdir() if p.name != DIGEST)
    lines = [f"{_sum(folder / name)} {name}\n" for name in names]
    return "".join([f"{place.parent.name}/{place.name}\n", *lines])


def _sum(file: Path) -> str:
    return str(file.stat().st_size) if file.name == CONSTANTS else digest(file.read_bytes())


def _is_valid(place: Path) -> bool:
    """Whether an entry exists, belongs to this user, and matches its digest."""
    try:
        return is_own_entry(place) and (place / DIGEST).read_text() == _sums(place, place)
    except (OSError, UnicodeDecodeError):
        return False


def _move(work: Path, place: Path) -> None:
    """Move a finished entry to its place; an existing valid one is kept."""
    for _ in range(5):
        try:
            work.rename(place)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        if _is_valid(place):
            return
        with suppress(OSError):  # another process may have moved the damaged entry away
            place.rename(work.with_suffix(".damaged"))
        remove_folder(work.with_suffix(".damaged"))
    raise OSError(errno.EEXIST, f"cannot replace the damaged cache entry {place}")


def _touch(place: Path) -> None:
    """Record the use of an entry for `sweep`."""
    with suppress(OSError):
        os.utime(place)


def _folders(place: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(place) as found:
            return [each for each in found if each.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _size(entry: os.DirEntry[str]) -> int:
    try:
        with os.scandir(entry.path) as files:
            return ENTRY + sum(file.stat().st_size for file in files)
    except OSError:
        return 0


def _used(entry: os.DirEntry[str]) -> float:
    """Return when an entry was last used; now if another process has removed it."""
    try:
        return entry.stat().st_mtime
    except OSError:
        return time.time()
