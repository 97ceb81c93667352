"""Base classes of GPU peers, which are skipped with the reason if their library or a device is absent."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from ..errors import UnavailableError
from ..gate import Rankings
from .base import Peer


class GpuPeer(Peer):
    """A peer on a GPU. Corpora and graphs are copied beforehand; copies of queries and answers are timed."""

    @classmethod
    @abstractmethod
    def devices(cls) -> int:
        """Return the number of devices that the library sees; called after its modules were imported."""

    @classmethod
    def require(cls) -> None:
        """Raise UnavailableError if the library or a device is absent."""
        try:
            super().require()
            count = cls.devices()
        except UnavailableError:
            raise
        except Exception as error:  # without a driver, each library fails in its own way
            raise UnavailableError(f"{cls.modules[0]} cannot be used here: {_message(error)}") from error
        if not count:
            raise UnavailableError(f"{cls.modules[0]} sees no CUDA device")


class CupyPeer(GpuPeer):
    """A GPU peer whose arrays are CuPy's."""

    packages = ("cupy-cuda12x", "cupy-cuda13x")
    modules = ("cupy",)

    @classmethod
    def devices(cls) -> int:
        import cupy

        return int(cupy.cuda.runtime.getDeviceCount())

    @staticmethod
    def to_host(found: Any) -> Any:
        """Copy device arrays to the host, which waits for the device."""
        import cupy

        if isinstance(found, Rankings):
            return Rankings(cupy.asnumpy(found.ids), cupy.asnumpy(found.scores))
        return cupy.asnumpy(found)


def _message(error: Exception) -> str:
    """Return the first line with letters, because some messages begin with a frame."""
    lines = (line.strip() for line in str(error).splitlines())
    return next((line for line in lines if any(map(str.isalpha, line))), repr(error))
