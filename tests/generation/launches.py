"""Stands in for kernels of Triton: keeps what they were launched with, and what would be compiled for it."""

from collections.abc import Callable
from typing import Any

from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend
from triton.compiler import compile as compile_for
from triton.runtime.jit import create_function_from_signature

H100 = GPUTarget("cuda", 90, 32)


class Launches:
    """Takes a kernel's place. Computes nothing."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel
        self._backend = make_backend(H100)
        self._specialise = create_function_from_signature(kernel.signature, kernel.params, self._backend)
        self._launches: list[tuple[tuple[object, ...], dict[str, object]]] = []
        self.variants: set[str] = set()

    def __getitem__(self, grid: object) -> Callable[..., None]:
        return self._note

    @property
    def count(self) -> int:
        """Launches until now."""
        return len(self._launches)

    def compiled(self) -> Any:
        """What an H100 would be given for the latest launch, by Triton's compiler and its own ptxas."""
        arguments, options = self._launches[-1]
        bound, assumed, others = self._specialise(*arguments, **options)
        packed = self._kernel._pack_args(self._backend, dict(options), bound, assumed, others)  # noqa: SLF001
        chosen, signature, constants, attributes = packed
        source = ASTSource(self._kernel, signature, constants, attributes)
        return compile_for(source, target=H100, options=chosen.__dict__)

    def _note(self, *arguments: object, **options: object) -> None:
        self._launches.append((arguments, options))
        _, assumed, _ = self._specialise(*arguments, **options)
        self.variants.add(str(assumed))
