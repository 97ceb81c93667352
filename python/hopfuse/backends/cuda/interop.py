"""Exchange device arrays with other libraries, without copies and on their streams."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import _native
from ..._native import DeviceArray
from ...errors import InputError

_ON_HOST = (1, 3, 11)  # DLPack's kDLCPU, kDLCUDAHost, kDLROCMHost
_ON_CUDA = (2, 13)  # kDLCUDA, kDLCUDAManaged
_LEGACY_STREAM = 1  # in both protocols


def interface_of(array: Any) -> dict[str, Any] | None:
    """Return ``__cuda_array_interface__``, or None; torch raises various errors for tensors that do not support it."""
    try:
        return dict(array.__cuda_array_interface__)
    except (AttributeError, RuntimeError, TypeError, ValueError):
        return None


def dlpack_device_of(array: Any) -> tuple[int, int] | None:
    """Return the DLPack (type, id) of the array's device, or None."""
    try:
        kind, number = array.__dlpack_device__()
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError):
        return None
    return int(kind), int(number)


def is_device_array(array: Any) -> bool:
    if isinstance(array, DeviceArray):
        return True
    device = dlpack_device_of(array)  # first, because torch makes __cuda_array_interface__ slowly
    if device is not None and device[0] not in _ON_HOST:
        return True
    return interface_of(array) is not None


def ordinal_of(device: _native.Device, array: Any) -> int | None:
    """Return the number of the CUDA device that holds an array, or None if it does not say."""
    if isinstance(array, DeviceArray):
        return array.device
    found = dlpack_device_of(array)
    if found is not None:
        return found[1] if found[0] in _ON_CUDA else None
    interface = interface_of(array)
    address = 0 if interface is None else interface["data"][0]
    return _native.device_of_address(device, address) if address else None


def adopt(device: _native.Device, array: Any) -> DeviceArray:
    """Return a view of the caller's memory; raise InputError if it is elsewhere or not C-contiguous."""
    if isinstance(array, DeviceArray):
        if not array.is_on(device):
            _check_device(array.device, device.ordinal)
            return _native.device_array_of(device, array)
        return array
    interface = interface_of(array)
    if interface is not None:
        return _adopt_interface(device, array, interface)
    found = dlpack_device_of(array)
    if found is None or found[0] not in _ON_CUDA:
        where = "on an unknown device" if found is None else f"on the DLPack device {found}"
        raise InputError(
            "type",
            None,
            "the {given} is {where}; allowed are arrays on the host, or on a CUDA device with "
            "__cuda_array_interface__ or DLPack: copy it to one of these",
            given=type(array).__name__,
            where=where,
        )
    _check_device(found[1], device.ordinal)
    try:
        adopted, steps = _from_dlpack(device, array)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(
            "type",
            None,
            "the {given} cannot be exported by DLPack: {error}. It must hold numbers and need no gradient; use "
            "x.detach() in torch",
            given=type(array).__name__,
            error=error,
        ) from error
    itemsize = adopted.dtype.itemsize
    _check_contiguous(adopted.shape, None if steps is None else [step * itemsize for step in steps], itemsize)
    return adopted


def _from_dlpack(device: _native.Device, array: Any) -> tuple[DeviceArray, Sequence[int] | None]:
    """Return a view, ordered after the array's pending work by its library, and its strides in elements."""
    queue = device.queue()
    stream = queue.stream or _LEGACY_STREAM
    try:
        capsule = array.__dlpack__(stream=stream, max_version=(1, 0))
    except TypeError:  # a library of before version 1
        capsule = array.__dlpack__(stream=stream)
    return _native.device_array_of_capsule(device, capsule, queue)


def _adopt_interface(device: _native.Device, array: Any, interface: dict[str, Any]) -> DeviceArray:
    if interface.get("mask") is not None:
        raise InputError(
            "unsupported", None, "the device array has a mask, which is not supported; fill the masked elements first"
        )
    shape, (address, readonly) = tuple(interface["shape"]), interface["data"]
    dtype = np.dtype(interface["typestr"])
    _check_contiguous(shape, interface.get("strides"), dtype.itemsize)
    if address:  # there is none without elements
        _check_device(_native.device_of_address(device, address), device.ordinal)
    stream, owner = _stream_of(array, interface)
    return _native.device_array_over(device, address, shape, dtype, array, stream, owner, bool(readonly))


def _check_device(found: int, device: int) -> None:
    if found != device:
        raise InputError(
            "conflict",
            None,
            "the array is on CUDA device {given}, and other arrays of the call are on device {allowed}; move all of "
            "them to one device",
            given=found,
            allowed=device,
        )


def _check_contiguous(shape: Sequence[int], strides: Sequence[int] | None, itemsize: int) -> None:
    """Raise unless the array is C-contiguous; strides are in bytes, and None means contiguous."""
    if strides is None or 0 in shape:
        return
    step = itemsize
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != step:
            raise InputError(
                "shape",
                None,
                "the device array of the shape {shape} has the strides {strides}; it must be C-contiguous: use "
                "cupy.ascontiguousarray(x), or x.contiguous() in torch",
                shape=tuple(shape),
                strides=tuple(strides),
            )
        step *= size


def export(array: DeviceArray, like: Any) -> Any:
    """Return the device array in the library of ``like``, or as it is if that library cannot import it."""
    if isinstance(like, DeviceArray) or not is_device_array(like):
        return array
    for library, name in (("torch", "Tensor"), ("cupy", "ndarray")):
        module: Any = sys.modules.get(library)
        kind = getattr(module, name, None)
        if kind is not None and isinstance(like, kind):
            return module.from_dlpack(array)
    try:
        namespace = like.__array_namespace__()
    except (AttributeError, TypeError, ValueError):
        return array
    return namespace.from_dlpack(array)


def on_stream_of(device: _native.Device, array: Any) -> contextlib.AbstractContextManager[Any]:
    """Queue calls of this thread on the stream of the array's library; on the default stream if it is not known."""
    if array is None:
        return contextlib.nullcontext()
    if isinstance(array, DeviceArray):
        return device.on_stream_of(array)
    stream, owner = _stream_of(array, None)
    return device.on_stream(_LEGACY_STREAM if stream is None else stream, owner)


def _stream_of(array: Any, interface: dict[str, Any] | None) -> tuple[int | None, Any]:
    """Return the stream on which an array may be used, if its library tells it, and the object that keeps it alive."""
    torch = sys.modules.get("torch")
    tensor = getattr(torch, "Tensor", None)
    if tensor is not None and isinstance(array, tensor) and array.is_cuda:
        stream = torch.cuda.current_stream(array.device)  # type: ignore[union-attr]
        return int(stream.cuda_stream), stream
    found = interface_of(array) if interface is None else interface
    stream = None if found is None else found.get("stream")
    return (None, None) if stream is None else (int(stream), array)
