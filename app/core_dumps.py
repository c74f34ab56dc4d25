"""No core dumps: one would hold documents, prompts and keys, readable by whoever finds the file."""

import resource


def forbid_core_dumps() -> None:
    """Have the kernel write none for this process and those it starts (setrlimit(2), RLIMIT_CORE)."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
