"""The errors of builds and launches."""

from __future__ import annotations


class SimtBuildError(Exception):
    """A .cu file is outside the language subset, or does not compile."""


class SimtError(Exception):
    """The emulator or a sanitizer found an error in a kernel or in its launch.

    ``kind`` says what was found:

    =============  ==========================================================================================
    ``launch``     the launch itself: geometry, shared memory, unknown kernel
    ``barrier``    ``__syncthreads`` that not all threads of the block come to, or not to the same one
    ``warp``       a warp operation: its mask, its source lane, or lanes that do another one
    ``deadlock``   every thread waits
    ``livelock``   a thread waits, by atomics, for one that cannot run
    ``shared``     dynamic shared memory used, none asked for
    ``trap``       ``__trap()``
    ``fault``      plain build: bad address, division by zero, stack overflow
    ``address``    AddressSanitizer: outside an array
    ``undefined``  UndefinedBehaviorSanitizer: overflow, misaligned access, index beyond a static array
    ``race``       ThreadSanitizer: two threads, one of them writing, nothing between them
    ``crash``      the runner died of something else
    =============  ==========================================================================================
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message
