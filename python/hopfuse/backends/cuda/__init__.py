"""The device backend: launch geometry, workspaces and order of launches over a small runtime protocol."""

from __future__ import annotations

from .device_ops import DeviceOps
from .recordings import Recordings
from .runtime import Runtime

__all__ = ["DeviceOps", "Recordings", "Runtime"]
