"""Restricts the files that this process can open, by Landlock (Linux 5.13, docs.kernel.org/userspace-api/landlock).

There is no C library function for it: these are the three system calls.
"""

import ctypes
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from enum import IntFlag
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on every processor
_WANT_VERSION = 1
_PATH_BENEATH = 1
_NO_TCP = 3  # neither binding nor connecting, from version 4 on
_NO_SIGNALS_NOR_SOCKETS = 3  # to processes outside, from version 6 on


class Access(IntFlag):
    """What may be done with the files below a folder."""

    EXECUTE = 1 << 0
    WRITE_FILE = 1 << 1
    READ_FILE = 1 << 2
    READ_DIR = 1 << 3
    REMOVE_DIR = 1 << 4
    REMOVE_FILE = 1 << 5
    MAKE_CHAR = 1 << 6
    MAKE_DIR = 1 << 7
    MAKE_REG = 1 << 8
    MAKE_SOCK = 1 << 9
    MAKE_FIFO = 1 << 10
    MAKE_BLOCK = 1 << 11
    MAKE_SYM = 1 << 12
    REFER = 1 << 13
    TRUNCATE = 1 << 14
    IOCTL_DEV = 1 << 15


READ = Access.READ_FILE | Access.READ_DIR
RUN = READ | Access.EXECUTE
CHANGE = (
    READ
    | Access.WRITE_FILE
    | Access.REMOVE_DIR
    | Access.REMOVE_FILE
    | Access.MAKE_DIR
    | Access.MAKE_REG
    | Access.MAKE_SOCK
    | Access.MAKE_FIFO
    | Access.MAKE_SYM
    | Access.REFER
    | Access.TRUNCATE
)
_OF_FILES = Access.EXECUTE | Access.WRITE_FILE | Access.READ_FILE | Access.TRUNCATE | Access.IOCTL_DEV
_SINCE = {Access.REFER: 2, Access.TRUNCATE: 3, Access.IOCTL_DEV: 5}
"""The version that first knows an access; the others are of the first."""


class _Ruleset(ctypes.Structure):
    """`struct landlock_ruleset_attr`."""

    _fields_ = (("access_fs", ctypes.c_uint64), ("access_net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    """`struct landlock_path_beneath_attr`."""

    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def landlock_version() -> int:
    """The version of Landlock's interface in this kernel; 0 where there is none or it is switched off."""
    return max(0, _syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_WANT_VERSION)))


def restrict_files(allowed: Mapping[Access, Iterable[Path]]) -> bool:
    """Forbid this thread, and all it starts, to open any file that is not below one of the folders.

    Also forbids TCP, signals to other processes and abstract sockets, as far as this kernel can.
    It needs `PR_SET_NO_NEW_PRIVS`.

    Args:
        allowed: By what may be done, files and folders; those that are not there are left out.

    Returns:
        Whether the kernel does it.
    """
    version = landlock_version()
    if version == 0:
        return False
    handled = sum(access for access in Access if version >= _SINCE.get(access, 1))
    attributes = _Ruleset(handled, _NO_TCP if version >= 4 else 0, _NO_SIGNALS_NOR_SOCKETS if version >= 6 else 0)
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = _syscall(_CREATE_RULESET, ctypes.byref(attributes), ctypes.c_size_t(size), ctypes.c_uint32(0))
    if ruleset < 0:
        return False
    try:
        for access, paths in allowed.items():
            for path in paths:
                with suppress(OSError):
                    _allow(ruleset, path, int(access) & handled)
        return _syscall(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0)) == 0
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: Path, access: int) -> None:
    parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = _PathBeneath(access if path.is_dir() else access & _OF_FILES, parent)
        _syscall(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(_PATH_BENEATH), ctypes.byref(rule), ctypes.c_uint32(0))
    finally:
        os.close(parent)


def _syscall(number: int, *arguments: object) -> int:
    try:
        return int(ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *arguments))
    except (OSError, AttributeError):  # no Linux
        return -1
