"""Arrays on the emulator's device, like those of a caller with a GPU."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import hopfuse as hf
import numpy as np
from hopfuse import backends
from variants import SIMT, simt_runtime


def on_device(value: Any) -> Any:
    """Return a copy of an array, Hits or Seeds on the device."""
    if isinstance(value, hf.Hits):
        parts = {field.name: on_device(getattr(value, field.name)) for field in fields(value)}
        return type(value).unchecked(**parts)
    if isinstance(value, hf.Seeds):
        return hf.Seeds(on_device(value.nodes), on_device(value.weights))
    simt_runtime()
    return backends._backends[SIMT].runtime.device.upload(np.array(value, order="C"))


def recording_of(captured: hf.Captured) -> Any:
    """Return the only recording that a captured core has made."""
    (recordings,) = captured._recordings.values()
    (recorded,) = recordings._made.values()
    return recorded.native


def on_host(value: Any) -> Any:
    """Return a copy of it on the host."""
    if isinstance(value, hf.Hits):
        parts = {field.name: on_host(getattr(value, field.name)) for field in fields(value)}
        return type(value).unchecked(**parts)
    if isinstance(value, hf.Seeds):
        return hf.Seeds(on_host(value.nodes), on_host(value.weights))
    if isinstance(value, dict):
        return {name: on_host(part) for name, part in value.items()}
    if isinstance(value, tuple):
        return tuple(on_host(part) for part in value)
    return value.to_numpy()
