"""The device backend: launch geometry, workspaces and launch order, over a small runtime protocol.

CuPy is imported only in this package, and lazily.
"""

from __future__ import annotations

from .device_ops import DeviceOps
from .recordings import Recordings
from .runtime import Runtime

__all__ = ["DeviceOps", "Recordings", "Runtime"]
