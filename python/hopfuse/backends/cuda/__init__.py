"""The device backend: which device, arrays of other libraries, recordings, estimates; all work is native."""

from __future__ import annotations

from .device_ops import DeviceOps
from .recordings import Recordings
from .runtime import Runtime

__all__ = ["DeviceOps", "Recordings", "Runtime"]
