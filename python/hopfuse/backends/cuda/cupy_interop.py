"""Exchange device arrays with other libraries, without copies and on their streams."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...errors import InputError

_ON_HOST = (1, 3, 11)  # DLPack's kDLCPU, kDLCUDAHost, kDLROCMHost
_ON_CUDA = (2, 13)  # kDLCUDA, kDLCUDAManaged


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
    device = dlpack_device_of(array)  # first, because torch makes __cuda_array_interface__ slowly
    if device is not None and device[0] not in _ON_HOST:
        return True
    return interface_of(array) is not None


def adopt(cupy: Any, device: int, array: Any) -> Any:
    """Return a CuPy array over the caller's memory; raise InputError if it is elsewhere or not C-contiguous."""
    if isinstance(array, cupy.ndarray):
        _check_device(array.device.id, device)
        _check_contiguous(array.shape, array.strides, array.dtype.itemsize)
        return array
    interface = interface_of(array)
    if interface is not None:
        return _adopt_interface(cupy, device, array, interface)
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
    _check_device(found[1], device)
    try:
        adopted = cupy.from_dlpack(array)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(
            "type",
            None,
            "the {given} cannot be exported by DLPack: {error}. It must hold numbers and need no gradient; use "
            "x.detach() in torch",
            given=type(array).__name__,
            error=error,
        ) from error
    _check_contiguous(adopted.shape, adopted.strides, adopted.dtype.itemsize)
    return adopted


def _adopt_interface(cupy: Any, device: int, array: Any, interface: dict[str, Any]) -> Any:
    if interface.get("mask") is not None:
        raise InputError(
            "unsupported", None, "the device array has a mask, which is not supported; fill the masked elements first"
        )
    shape, (address, _) = tuple(interface["shape"]), interface["data"]
    dtype = cupy.dtype(interface["typestr"])
    _check_contiguous(shape, interface.get("strides"), dtype.itemsize)
    if not address:  # no elements
        return cupy.ndarray(shape, dtype)
    found = int(cupy.cuda.runtime.pointerGetAttributes(address).device)
    _check_device(found, device)
    memory = cupy.cuda.UnownedMemory(address, math.prod(shape) * dtype.itemsize, array, found)
    return cupy.ndarray(shape, dtype, cupy.cuda.MemoryPointer(memory, 0))


def _check_device(found: int, device: int) -> None:
    if found != device:
        raise InputError(
            "conflict",
            None,
            "the array is on CUDA device {given}, but hopfuse uses device {allowed} in this process; copy the array "
            "there, or start the process with CUDA_VISIBLE_DEVICES={given}",
            given=found,
            allowed=device,
        )


def _check_contiguous(shape: tuple[int, ...], strides: tuple[int, ...] | None, itemsize: int) -> None:
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
                shape=shape,
                strides=strides,
            )
        step *= size


def export(cupy: Any, array: Any, like: Any) -> Any:
    """Return the device array in the library of ``like``, or as a CuPy array if that library cannot import it."""
    if isinstance(like, cupy.ndarray):
        return array
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(like, torch.Tensor):
        return torch.from_dlpack(array) if like.is_cuda else array
    if not is_device_array(like):
        return array
    try:
        namespace = like.__array_namespace__()
    except (AttributeError, TypeError, ValueError):
        return array
    return namespace.from_dlpack(array)


class _Borrowed:
    """Another library's stream, wrapped in the CUDA stream protocol; keeps ``owner`` alive."""

    def __init__(self, address: int, owner: Any) -> None:
        self._address, self._owner = address, owner

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._address


@contextmanager
def on_stream_of(cupy: Any, array: Any) -> Iterator[None]:
    """Make the stream of the array's library current, if it is known."""
    stream = None if array is None or isinstance(array, cupy.ndarray) else _stream_of(cupy, array)
    if stream is None:
        yield
        return
    with stream:
        yield


def _stream_of(cupy: Any, array: Any) -> Any:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor) and array.is_cuda:
        stream = torch.cuda.current_stream(array.device)
        return _stream(cupy, int(stream.cuda_stream), stream)
    interface = interface_of(array)
    address = None if interface is None else interface.get("stream")
    return None if address is None else _stream(cupy, int(address), array)


def _stream(cupy: Any, address: int, owner: Any) -> Any:
    """Return a CuPy stream; addresses 0 and 1 are the legacy default stream, 2 is the per-thread one."""
    if address in (0, 1):
        return cupy.cuda.Stream.null
    return cupy.cuda.Stream.ptds if address == 2 else cupy.cuda.Stream.from_external(_Borrowed(address, owner))
