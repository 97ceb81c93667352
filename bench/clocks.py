"""The clocks of the GPU while something runs, by nvidia-smi where it is installed."""

from __future__ import annotations

import shutil
import subprocess
from statistics import median
from types import TracebackType

QUERY = ("--query-gpu=clocks.sm,clocks.mem", "--format=csv,noheader,nounits", "--id=0", "--loop-ms=20")


class Clocks:
    """Samples the clocks in the background, from :meth:`__enter__` on."""

    def __init__(self) -> None:
        self._program = shutil.which("nvidia-smi")
        self._child: subprocess.Popen[str] | None = None
        self.samples: list[tuple[int, int]] = []

    def __enter__(self) -> Clocks:
        if self._program is not None:
            command = (self._program, *QUERY)
            self._child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._child is None:
            return
        self._child.terminate()
        self.samples = read(self._child.communicate()[0])

    def summary(self) -> dict[str, float] | None:
        """Return the number of samples, the lowest, the median and the highest clock of multiprocessors, and the
        memory's, in MHz; None without samples.
        """
        if not self.samples:
            return None
        cores, memory = zip(*self.samples, strict=True)
        return {
            "samples": len(cores),
            "least": min(cores),
            "median": median(cores),
            "most": max(cores),
            "memory": median(memory),
        }


def read(text: str) -> list[tuple[int, int]]:
    """Return the samples of nvidia-smi's output; the last line may be cut off, and fields may not be supported."""
    found = []
    for line in text.splitlines(keepends=True):
        words = [word.strip() for word in line.split(",")]
        if line.endswith("\n") and len(words) == 2 and all(word.isdecimal() for word in words):
            found.append((int(words[0]), int(words[1])))
    return found
