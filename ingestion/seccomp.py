"""Forbids system calls that a parser has no use for, by the kernel's filters (seccomp(2), classic BPF).

A filter of a dozen instructions, written out: the bindings of libseccomp for Python need that library on the machine.
"""

import ctypes
import errno
import platform
import struct
from collections.abc import Sequence
from dataclasses import dataclass

_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06  # BPF_LD+W+ABS, BPF_JMP+JEQ+K, BPF_JMP+JGE+K, BPF_RET+K
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in `struct seccomp_data`
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EACCES
_AF_UNIX = 1
_X32 = 0x40000000  # a second table of calls on x86-64


@dataclass(frozen=True, slots=True)
class _Processor:
    """The numbers of a processor's system calls; `refused` are those that no parser may make."""

    audit: int
    socket: int
    refused: tuple[int, ...]


# ptrace, process_vm_readv, process_vm_writev, mount, umount2, pivot_root, chroot, setns, unshare, bpf, keyctl,
# perf_event_open, userfaultfd, kexec_load, io_uring_setup (which opens sockets by itself)
_PROCESSORS = {
    "x86_64": _Processor(0xC000003E, 41, (101, 310, 311, 165, 166, 155, 161, 308, 272, 321, 250, 298, 323, 246, 425)),
    "aarch64": _Processor(0xC00000B7, 198, (117, 270, 271, 40, 39, 41, 51, 268, 97, 280, 219, 241, 282, 104, 425)),
}


def refuse_calls(*, local_sockets: bool) -> bool:
    """Refuse sockets, other processes' memory, and changes of namespaces to this process and all it starts.

    The calls fail with EACCES. It needs `PR_SET_NO_NEW_PRIVS`.

    Args:
        local_sockets: Allow sockets of the family AF_UNIX, which LibreOffice needs.

    Returns:
        Whether the kernel does it; not for processors whose calls are unknown here.
    """
    processor = _PROCESSORS.get(platform.machine())
    if processor is None:
        return False
    program = b"".join(_filter(processor, local_sockets=local_sockets))
    instructions = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HxxxxxxP", len(program) // 8, ctypes.addressof(instructions))
    try:
        prctl = ctypes.CDLL(None, use_errno=True).prctl
    except (OSError, AttributeError):
        return False
    held = ctypes.create_string_buffer(header, len(header))
    return int(prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_MODE_FILTER), ctypes.byref(held), 0, 0)) == 0


def _filter(processor: _Processor, *, local_sockets: bool) -> Sequence[bytes]:
    """The instructions; jumps count those that are skipped, if the comparison holds and if not."""
    body = [_instruction(_EQUAL, 0, 1, number) + _instruction(_RETURN, 0, 0, _REFUSE) for number in processor.refused]
    family = [
        _instruction(_LOAD, 0, 0, _FIRST_ARGUMENT),
        _instruction(_EQUAL, 0, 1, _AF_UNIX),
        _instruction(_RETURN, 0, 0, _ALLOW),
    ]
    socket = (family if local_sockets else []) + [_instruction(_RETURN, 0, 0, _REFUSE)]
    return [
        _instruction(_LOAD, 0, 0, _ARCHITECTURE),
        _instruction(_EQUAL, 1, 0, processor.audit),
        _instruction(_RETURN, 0, 0, _REFUSE),
        _instruction(_LOAD, 0, 0, _NUMBER),
        _instruction(_AT_LEAST, 0, 1, _X32),
        _instruction(_RETURN, 0, 0, _REFUSE),
        *body,
        _instruction(_EQUAL, 0, len(socket), processor.socket),
        *socket,
        _instruction(_RETURN, 0, 0, _ALLOW),
    ]


def _instruction(code: int, if_true: int, if_false: int, value: int) -> bytes:
    """`struct sock_filter`."""
    return struct.pack("=HBBI", code, if_true, if_false, value)
