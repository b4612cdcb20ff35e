"""Folders that only this user can write: code that is loaded must not come from other users.

A folder is trusted if it, and all folders and links on the path to it, belong to this user or the
system and are not writable by others. A sticky folder such as /tmp, where only owners delete
entries, may be on the path.
"""

from __future__ import annotations

import os
import stat
from functools import cache
from importlib import import_module
from pathlib import Path

MODE = 0o700
LINKS = 40
"""Maximum number of links followed on the path, as in Linux."""


def make_private(folder: Path) -> None:
    """Create a folder and its missing parents for this user only; OSError if that fails."""
    if folder.is_dir():
        return
    make_private(folder.parent)
    folder.mkdir(MODE, exist_ok=True)


def why_shared(folder: Path) -> str:
    """Return why others could change the contents of ``folder``, "" if they cannot.

    A folder that does not exist yet is safe if the path is. OSError if the path is invalid.
    """
    last = os.path.realpath(folder)
    for place, status in _path_entries(folder):
        said = _why_open(status, is_last=place == last)
        if said:
            return f"{place} {said}"
    return ""


def forbids_code(folder: Path) -> bool:
    """Whether the file system of ``folder`` is mounted with noexec: no library there is loaded."""
    try:
        return bool(os.statvfs(folder).f_flag & getattr(os, "ST_NOEXEC", 0))
    except OSError:
        return False


def is_own_file(path: Path) -> bool:
    """Whether this is a plain file, not a link, that only this user can write."""
    status = os.lstat(path)
    return stat.S_ISREG(status.st_mode) and not _why_open(status, is_last=True)


def is_own_entry(folder: Path) -> bool:
    """Whether this is a folder of plain files, not a link, that only this user can write."""
    status = os.lstat(folder)
    if not stat.S_ISDIR(status.st_mode) or _why_open(status, is_last=True):
        return False
    others_enter = status.st_mode & (stat.S_IXGRP | stat.S_IXOTH)
    with os.scandir(folder) as entries:
        files = [entry.stat(follow_symlinks=False) for entry in entries]
    return all(
        stat.S_ISREG(file.st_mode)
        and file.st_uid in _trusted_owners()
        and not (others_enter and _why_open(file, is_last=True))
        for file in files
    )


def _path_entries(folder: Path) -> list[tuple[str, os.stat_result]]:
    """Return the existing folders and links on the path, from the root on."""
    at = os.path.abspath(os.sep)
    found = [(at, os.lstat(at))]
    left = list(reversed(Path(os.path.abspath(folder)).parts[1:]))
    links = 0
    while left:
        part = left.pop()
        if part in ("", os.curdir, os.pardir):
            at = os.path.dirname(at) if part == os.pardir else at
            continue
        here = os.path.join(at, part)
        try:
            status = os.lstat(here)
        except FileNotFoundError:
            return found
        found.append((here, status))
        if not stat.S_ISLNK(status.st_mode):
            at = here
            continue
        if (links := links + 1) > LINKS:
            raise OSError(0, "too many links on the way to it")
        target = os.readlink(here)
        at = os.path.abspath(os.sep) if os.path.isabs(target) else at
        left += reversed(target.split(os.sep))
    return found


def _why_open(status: os.stat_result, is_last: bool) -> str:
    """Return why others could change or replace a folder or link."""
    if status.st_uid not in _trusted_owners():
        return f"belongs to another user (number {status.st_uid})"
    if stat.S_ISLNK(status.st_mode):
        return ""  # replacing a link needs write access to its folder
    mode = stat.S_IMODE(status.st_mode)
    if mode & stat.S_ISVTX and not is_last:
        return ""
    if mode & stat.S_IWOTH:
        return f"can be written by everybody (mode {mode:o})"
    if mode & stat.S_IWGRP and not _is_own_group(status.st_gid):
        return f"can be written by a group (mode {mode:o})"
    return ""


@cache
def _trusted_owners() -> frozenset[int]:
    """Return the user ids of this user and of the system.

    In a container without the system's user id, the system's files appear to belong to nobody.
    """
    known = {0, os.geteuid()}
    try:
        maps = Path("/proc/self/uid_map").read_text().split()
        outside = maps[1::3]  # triples: first id inside, first id outside, count
        if outside and "0" not in outside:
            known.add(int(Path("/proc/sys/kernel/overflowuid").read_text()))
    except (OSError, ValueError):
        pass
    return frozenset(known)


@cache
def _is_own_group(number: int) -> bool:
    """Whether a group has only this user, as many systems create for each user."""
    if os.geteuid() == 0 and number == 0:
        return True
    try:
        me = import_module("pwd").getpwuid(os.geteuid())
        group = import_module("grp").getgrgid(number)
    except (ImportError, KeyError):
        return False
    alone = set(group.gr_mem) <= {me.pw_name}
    return bool(alone and me.pw_gid == number and group.gr_name == me.pw_name)
