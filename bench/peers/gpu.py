"""What peers on a GPU share: they are skipped, with the reason, where their library or a device is absent."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from ..errors import UnavailableError
from ..gate import Rankings
from .base import Peer


class GpuPeer(Peer):
    """Corpora and graphs are on the device beforehand; that queries go there and answers come back is in the time."""

    @classmethod
    @abstractmethod
    def devices(cls) -> int:
        """How many devices the library sees, asked after its modules were imported."""

    @classmethod
    def require(cls) -> None:
        """Raise UnavailableError where the library or a device is absent."""
        try:
            super().require()
            count = cls.devices()
        except UnavailableError:
            raise
        except Exception as error:  # libraries without a driver fail each in their own way
            raise UnavailableError(f"{cls.modules[0]} cannot be used here: {_said(error)}") from error
        if not count:
            raise UnavailableError(f"{cls.modules[0]} sees no CUDA device")


class CupyPeer(GpuPeer):
    """Its arrays are CuPy's."""

    packages = ("cupy-cuda12x", "cupy-cuda13x")
    modules = ("cupy",)

    @classmethod
    def devices(cls) -> int:
        import cupy

        return int(cupy.cuda.runtime.getDeviceCount())

    @staticmethod
    def to_host(found: Any) -> Any:
        """What a case compares, of device arrays, on the host: the copies wait for the device."""
        import cupy

        if isinstance(found, Rankings):
            return Rankings(cupy.asnumpy(found.ids), cupy.asnumpy(found.scores))
        return cupy.asnumpy(found)


def _said(error: Exception) -> str:
    """The first line with words: some messages begin with a frame."""
    lines = (line.strip() for line in str(error).splitlines())
    return next((line for line in lines if any(map(str.isalpha, line))), repr(error))
