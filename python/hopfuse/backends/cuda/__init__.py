"""The device backend: choosing a device, arrays of others, recordings and memory; native code queues the work."""

from __future__ import annotations

from .device_ops import DeviceOps
from .recordings import Recordings
from .runtime import Runtime

__all__ = ["DeviceOps", "Recordings", "Runtime"]
