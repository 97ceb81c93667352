"""
Kernels of the CPU and of devices: arrays in, arrays out. Used by hopfuse.backends only.
"""

from collections.abc import Sequence
from typing import Annotated, Any, overload

import numpy
import numpy.typing
from numpy.typing import NDArray


def built_isas() -> list[str]:
    """Variants in this build, best first."""

def runnable_isas() -> list[str]:
    """Variants that this machine can run, best first."""

def refused_isas() -> list[str]:
    """
    Variants whose instructions this machine says it has, but which give wrong sums on it.
    """

def isa() -> str:
    """The variant that calls use."""

def isa_of(op: str) -> str:
    """The instruction set that the chosen variant runs an operation on."""

def use_isa(isa: str) -> bool:
    """Choose the variant; False where it cannot run here."""

def environment(name: str) -> str | None:
    """
    A variable of the environment, or None; in a fraction of the time that os.environ takes.
    """

def idle_workspace_bytes() -> int:
    """Bytes held for reuse by later calls."""

def pool_size() -> int:
    """Threads that the pool has started in this process."""

def release_workspaces() -> None:
    """Give the idle workspaces back to the system."""

class Token:
    """The native part of hopfuse.CancelToken."""

    def __init__(self) -> None: ...

    def cancel(self) -> None: ...

    def is_cancelled(self) -> bool: ...

class Scope:
    """A token in use, inside another scope or None."""

    def __init__(self, token: object, outer: object | None) -> None: ...

def use_scopes(current: object, raise_cancelled: object) -> None:
    """
    Take the function that returns the scope of a context, and the one that raises if a call is cancelled.
    """

def check_cancelled() -> None:
    """Raise for a signal, or if a token of the current context is cancelled."""

DENSE_TILE: int = 16

DENSE_GROUP: int = 4

DENSE_STEP: int = 12

def dense_types() -> dict[str, int]:
    """The number of each precision of originals."""

def dense_encode(vectors: Annotated[NDArray, dict(order='C', device='cpu', writable=False)], *, type: int, cosine: bool, threads: int, codes: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu')], scale: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], error: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], norm_code: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], norm: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')]) -> None: ...

def dense_topk(vectors: Annotated[NDArray, dict(order='C', device='cpu', writable=False)], *, type: int, cosine: bool, codes: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu')] | None, scale: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')] | None, error: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')] | None, norm_code: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')] | None, norm: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')] | None, queries: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], k: int, allow_mask: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)] | None, allow_indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)] | None, allow_ids: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)] | None, allow_shared: bool, threads: int, ids: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], scores: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], counts: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], rescored: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')]) -> bool: ...

class DeviceCorpus:
    """A corpus on a device."""

DEVICE_MOST_ROWS: int = 2147483647

DENSE_STEP_ERROR: float = 7.62939453125e-06

def device_corpus(queue: DeviceQueue, vectors: Annotated[NDArray, dict(order='C', device='cpu', writable=False)], *, type: int, cosine: bool) -> DeviceCorpus: ...

def device_dense_topk(queue: DeviceQueue, corpus: DeviceCorpus, *, queries: object, k: int, mask: object | None, indptr: object | None, ids: object | None, shared: bool, on_device: bool) -> dict: ...

def device_dot_bound(dim: int, type: int) -> tuple:
    """
    The slack, the norm's floor and the underflow of products of vectors with this dimension and type.
    """

class PinnedBlock:
    """Pinned host memory behind NumPy arrays."""

class DeviceQueue:
    """Where a call is queued on a device."""

    @property
    def stream(self) -> int: ...

def use_faults(raise_fault: object) -> None:
    """
    Take the function that raises the error of a query, by its status and row.
    """

class DeviceArray:
    """
    An array in the memory of a device, C-contiguous. Other libraries import it by DLPack or __cuda_array_interface__, without a copy.
    """

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> numpy.dtype[Any]: ...

    @property
    def ndim(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def nbytes(self) -> int: ...

    @property
    def device(self) -> int:
        """The number of the device."""

    def is_on(self, device: Device) -> bool:
        """Whether the array is one of this device object."""

    @property
    def address(self) -> int:
        """The address on the device."""

    @property
    def stream(self) -> int | None:
        """The stream of the pending work, or None."""

    def reshape(self, *sides: int | Sequence[int]) -> DeviceArray:
        """Another shape of the same elements; one side may be -1."""

    def view(self, dtype: object) -> DeviceArray:
        """The same bytes as another dtype."""

    def __getitem__(self, key: int | slice) -> DeviceArray:
        """A row, or rows from begin to end, without a copy."""

    def __len__(self) -> int: ...

    def __repr__(self) -> str: ...

    def to_numpy(self) -> numpy.typing.NDArray[Any]:
        """Copy to the host, waiting for the pending work."""

    def get(self) -> numpy.typing.NDArray[Any]:
        """The same as to_numpy()."""

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise TypeError: copies to the host are explicit."""

    def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None, dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...

def device_array_over(device: Device, address: int, shape: Sequence[int], dtype: object, owner: object, stream: int | None, stream_owner: object | None, readonly: bool) -> DeviceArray:
    """
    An array over the memory of an object, which it keeps alive; its work is ordered after that of the stream.
    """

def device_array_of(device: Device, array: DeviceArray) -> DeviceArray:
    """A view of an array of another object of the same device."""

def device_array_of_capsule(device: Device, capsule: object, queue: DeviceQueue) -> tuple[DeviceArray, tuple[int, ...] | None]:
    """
    An array over the tensor of a capsule, which is ready on the stream of the queue, and its strides or None.
    """

def device_of_address(device: Device, address: int) -> int:
    """The number of the device that holds an address."""

def use_device_errors(raise_error: object) -> None:
    """
    Take the function that raises the error of a device, by its kind and values.
    """

def current_device() -> int | None:
    """The number of the device that is current on this thread, or None."""

def count_devices() -> int:
    """The number of devices."""

def device_summary(ordinal: int) -> tuple[str, int]:
    """The name and the compute capability of a device."""

def driver_problem() -> tuple[str, int] | None:
    """Why the driver cannot be used, and its version or 0; None if it can."""

def driver_version() -> int:
    """The driver's version, 12040 for CUDA 12.4."""

class DeviceSizes:
    """Sizes of units of work, on which no result depends."""

    @property
    def tile_rows(self) -> int: ...

    @tile_rows.setter
    def tile_rows(self, arg: int, /) -> None: ...

    @property
    def tile_scores(self) -> int: ...

    @tile_scores.setter
    def tile_scores(self, arg: int, /) -> None: ...

    @property
    def batch(self) -> int: ...

    @batch.setter
    def batch(self, arg: int, /) -> None: ...

    @property
    def scored_at_once(self) -> int: ...

    @scored_at_once.setter
    def scored_at_once(self, arg: int, /) -> None: ...

    @property
    def split_rows(self) -> int: ...

    @split_rows.setter
    def split_rows(self, arg: int, /) -> None: ...

    @property
    def most_splits(self) -> int: ...

    @most_splits.setter
    def most_splits(self, arg: int, /) -> None: ...

    @property
    def widest(self) -> int: ...

    @widest.setter
    def widest(self, arg: int, /) -> None: ...

    @property
    def sort_chunk(self) -> int: ...

    @sort_chunk.setter
    def sort_chunk(self, arg: int, /) -> None: ...

    @property
    def sort_keys(self) -> int: ...

    @sort_keys.setter
    def sort_keys(self, arg: int, /) -> None: ...

    @property
    def split_blocks(self) -> int: ...

    @split_blocks.setter
    def split_blocks(self, arg: int, /) -> None: ...

    @property
    def coded_bytes(self) -> int: ...

    @coded_bytes.setter
    def coded_bytes(self, arg: int, /) -> None: ...

    @property
    def scanned_rows(self) -> int: ...

    @scanned_rows.setter
    def scanned_rows(self, arg: int, /) -> None: ...

    @property
    def most_codes(self) -> int: ...

    @most_codes.setter
    def most_codes(self, arg: int, /) -> None: ...

    @property
    def part(self) -> int: ...

    @part.setter
    def part(self, arg: int, /) -> None: ...

    @property
    def shared_entries(self) -> int: ...

    @shared_entries.setter
    def shared_entries(self, arg: int, /) -> None: ...

    @property
    def workspace(self) -> int: ...

    @workspace.setter
    def workspace(self, arg: int, /) -> None: ...

    @property
    def most_places(self) -> int: ...

    @most_places.setter
    def most_places(self, arg: int, /) -> None: ...

    @property
    def most_lanes(self) -> int: ...

    @most_lanes.setter
    def most_lanes(self, arg: int, /) -> None: ...

class StreamScope:
    """A block in which calls are queued on a stream."""

    def __enter__(self) -> None: ...

    def __exit__(self, *args: object) -> None: ...

class Device:
    """A device of this process, for all threads."""

    @staticmethod
    def open(ordinal: int, code: object) -> Device:
        """
        Open a device; `code` returns the image of a unit of kernels, its origin, and what else to load or None.
        """

    @staticmethod
    def counting(like: int | None = None) -> Device:
        """
        A device on which nothing runs: it counts the memory of the device with this number, or of a large one.
        """

    @property
    def ordinal(self) -> int: ...

    @property
    def name(self) -> str: ...

    @property
    def uuid(self) -> str: ...

    @property
    def capability(self) -> int: ...

    @property
    def driver_version(self) -> int: ...

    @property
    def multiprocessors(self) -> int: ...

    @property
    def total_bytes(self) -> int: ...

    @property
    def l2_bytes(self) -> int: ...

    @property
    def is_counting(self) -> bool: ...

    @property
    def is_exclusive(self) -> bool:
        """
        Whether one process at a time may use the device, which CUDA calls exclusive-process mode.
        """

    @property
    def sizes(self) -> DeviceSizes: ...

    @property
    def cooperative(self) -> bool:
        """Whether launches may be cooperative."""

    @cooperative.setter
    def cooperative(self, arg: bool, /) -> None: ...

    @property
    def recording(self) -> bool:
        """
        Whether results of this thread's calls cannot be read, as in a recording.
        """

    def queue(self) -> DeviceQueue:
        """Where a call of this thread is queued."""

    def on_stream(self, handle: int, owner: object | None) -> StreamScope:
        """Queue this thread's calls on a stream in a with block."""

    def on_stream_of(self, array: DeviceArray) -> StreamScope:
        """
        Queue this thread's calls on the stream of an array's pending work in a with block.
        """

    def empty(self, shape: object, dtype: object) -> DeviceArray:
        """An array with undefined elements."""

    def upload(self, array: object) -> DeviceArray:
        """A copy of an array of the host."""

    def free_bytes(self) -> int:
        """Bytes that an allocation can still get."""

    def trim(self) -> None:
        """Give cached memory back to the device."""

    def used_bytes(self) -> int:
        """Bytes in use, on a counting device."""

    def peak_bytes(self) -> int:
        """The most bytes in use, on a counting device."""

    def reset_peak(self) -> None: ...

    def origins(self) -> list[tuple[str, str]]:
        """Where the code of the loaded units comes from."""

    def start_timing(self) -> None:
        """Time the launches of this thread until read_times()."""

    def read_times(self) -> list[tuple[str, float]]:
        """The launches and their times in seconds, waiting for them."""

    def collect_with(self, collect: object) -> None:
        """Take what frees memory of Python's before an allocation fails."""

class RecordingMemory:
    """Memory of recordings that are never replayed at the same time."""

    def __init__(self, device: Device) -> None: ...

    @property
    def nbytes(self) -> int: ...

class DeviceRecording:
    """A core that is recorded for a batch size, and replayed for any."""

    def __init__(self, device: Device, memory: RecordingMemory, inputs: Sequence[tuple[Sequence[int], object]]) -> None: ...

    def begin(self, records: bool, for_host: bool) -> list[DeviceArray]:
        """Begin a run of the core on this thread, and return its inputs."""

    def end(self, leaves: Sequence[DeviceArray]) -> None:
        """End a run with the arrays of its result."""

    def abandon(self) -> None:
        """End a run in which something has raised."""

    @property
    def has_run(self) -> bool:
        """Whether the run before a recording is over."""

    def is_recorded(self, for_host: bool) -> bool: ...

    @property
    def rows(self) -> int:
        """The recorded batch size."""

    def on_host(self, arrays: Sequence[numpy.typing.NDArray[Any]], batch: int) -> tuple[list[numpy.typing.NDArray[Any]], list[int]] | None:
        """
        The results for NumPy arrays, and the queries that must be run without the recording.
        """

    def on_device(self, arrays: Sequence[DeviceArray], batch: int) -> tuple[list[DeviceArray], list[int]] | None:
        """
        The results for arrays on the device, and the queries that must be run without the recording.
        """

def device_take_rows(device: Device, array: DeviceArray, rows: Sequence[int]) -> DeviceArray:
    """A copy of these rows, which may repeat."""

def device_put_rows(device: Device, target: DeviceArray, rows: Sequence[int], source: DeviceArray) -> None:
    """Copy row i of `source` to row rows[i] of `target`."""

def dice(*, label_indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], label_units: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], units: int, query_indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], query_units: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], candidates: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], threads: int, scores: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')]) -> None: ...

class DeviceLabels:
    """Label sets on a device."""

def device_labels(queue: DeviceQueue, indptr: object, members: object) -> DeviceLabels:
    """Copy label sets to a device."""

def device_dice(queue: DeviceQueue, labels: DeviceLabels, *, query_indptr: object, query_units: object, indptr: object, candidates: object) -> numpy.typing.NDArray[numpy.float32]: ...

def fusion_methods() -> dict[str, int]:
    """The number of each fusion method."""

def calibrations() -> dict[str, int]:
    """The number of each calibration."""

def ties() -> dict[str, int]:
    """The number of each tie rule."""

def calibrate(scores: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], counts: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], *, method: int, ties: int, option: dict, threads: int, out: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')]) -> None: ...

def fuse(ids: Sequence[Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)]], scores: Sequence[Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)]], counts: Sequence[Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)]], *, pools: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], method: int, calibration: int, ties: int, calibration_option: dict, option: dict, weights: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], weights_shared: bool, consensus: float, prior: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], threads: int, out_ids: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], out_scores: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], out_counts: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')]) -> None: ...

def device_calibrate(queue: DeviceQueue, scores: object, counts: object, *, method: int, ties: int, option: dict, on_device: bool) -> dict: ...

def device_fuse(queue: DeviceQueue, lists: list, *, pools: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], method: int, calibration: int, ties: int, calibration_option: dict, option: dict, weights: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], consensus: float, prior: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], k: int, on_device: bool) -> dict: ...

def continue_rows(*, directed: bool, indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, edge_type: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)] | None, degree: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], node: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], row: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], source: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], type: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)], changed_weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], out_indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], out_indices: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu')], out_weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')] | None, out_edge_type: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu')] | None, out_degree: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], edges: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')]) -> int:
    """
    Write a graph's rows after changes of nodes and edges; the number of entries.
    """

@overload
def find_pairs(*, ends: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], lowest: int, number: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], size: int, directed: bool, pairs: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], out_found: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')]) -> int: ...

@overload
def find_pairs(*, ends: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], lowest: int, number: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], size: int, directed: bool, pairs: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], out_found: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')]) -> int:
    """Find the statements of edges between pairs of nodes; their number."""

@overload
def find_gone(*, ends: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], lowest: int, passages: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], end_gone: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)], passage_gone: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)], out_found: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')]) -> int: ...

@overload
def find_gone(*, ends: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], lowest: int, passages: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], end_gone: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)], passage_gone: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)], out_found: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')]) -> int:
    """
    Find the statements of edges that nodes or passages take with them; their number.
    """

def joined_below(*, indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], rows: int, out_indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], out_indices: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu')], out_often: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')]) -> int:
    """
    Find the later nodes that the first rows of a graph hold; the number of pairs.
    """

RESTART_OUTSIDE: int = 1

RESTART_BAD_WEIGHT: int = 2

RESTART_EMPTY_ROW: int = 3

RESTART_SUM_BEYOND: int = 4

def read_restarts(indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], node: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], internal_of: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], may_be_empty: bool, out_indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], out_node: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu')], out_weight: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')]) -> tuple | None:
    """
    Bring restarts into the order of walks; the fault and where it is, or None.
    """

def read_dicts(rows: list, internal_of: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], may_be_empty: bool, out_indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], out_node: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu')], out_weight: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')]) -> int | None:
    """
    Read restarts from dicts of plain numbers; how many entries count, or None for any other input.
    """

NODE_WEIGHT_ALL_ZERO: int = 2

def read_node_weights(single: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, wide: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)] | None, node: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], is_weighted: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)], has_entries: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)], allow: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)] | None, weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], other_weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')]) -> tuple | None:
    """
    Bring node weights into the range of walks; the fault, its row and column, or None.
    """

def first_unscorable(vectors: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], needs_length: bool, threads: int) -> tuple | None:
    """
    The first vector without a float32 score, and whether it is too small for one; or None.
    """

ISING_CANDIDATES: int = 1024

def ising(indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, internal_of: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], ids: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], scores: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], counts: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], *, coupling: float, temperature: float, relaxation: float, steps: int, blend: float, threads: int, out_ids: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], out_scores: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], out_counts: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')]) -> None: ...

def device_ising(queue: DeviceQueue, graph: DeviceRows, *, ids: object, scores: object, counts: object, coupling: float, temperature: float, relaxation: float, steps: int, blend: float, k: int, on_device: bool) -> dict: ...

PPR_LEAST_WEIGHT: float = 3.944304526105059e-31

def ppr(graph: PreparedGraph, *, restart_indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], restart_node: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], restart_value: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], damping: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], eta: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)] | None, per_type: bool, allow: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)] | None, node_weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, weighted_node: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)] | None, other_weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, tol: float, max_iter: int, threads: int, scores: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], iterations: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], residual: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], bound: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], converged: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu')]) -> tuple[int, int]: ...

def ppr_topk(graph: PreparedGraph, *, restart_indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], restart_node: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], restart_value: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], damping: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], eta: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)] | None, per_type: bool, allow: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)] | None, node_weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, weighted_node: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)] | None, other_weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, tol: float, max_iter: int, threads: int, candidates: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)] | None, stop_when_proven: bool, prove_order: bool, ids: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], scores: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], counts: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], score_bounds: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], proven: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu')], iterations: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], residual: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], bound: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], converged: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu')]) -> tuple[int, int]: ...

class DeviceRows:
    """The rows of a graph on a device."""

class DeviceGraph:
    """A graph on a device, with one normalisation of edge types."""

def device_rows(queue: DeviceQueue, prepared: PreparedGraph) -> DeviceRows:
    """Copy the rows of a graph to a device."""

def device_graph(queue: DeviceQueue, rows: DeviceRows, prepared: PreparedGraph, per_type: bool, with_out: bool) -> DeviceGraph:
    """
    Copy degrees to a device and, for degrees that a query sums, rows of outgoing edges.
    """

def device_ppr(queue: DeviceQueue, graph: DeviceGraph, queries: object, *, scores: object, on_device: bool) -> dict: ...

def device_ppr_topk(queue: DeviceQueue, graph: DeviceGraph, queries: object, *, k: int, candidates: object | None, stop_when_proven: bool, prove_order: bool, on_device: bool) -> dict: ...

def device_order_weights(queue: DeviceQueue, graph: DeviceGraph, *, weight: object, node: object, allow: object | None, lightest: object | None) -> dict: ...

def device_code_count(num_nodes: int) -> int:
    """
    The most distinct weights of a graph whose entries a device packs in words.
    """

def device_most_lanes(num_nodes: int, num_stored: int, l2_bytes: int, l2_speedup: float) -> int:
    """The lanes of blocks that take the least time per query, by bytes."""

def device_lane_blocks(batch: int, most: int = 32) -> list[tuple[int, int, int]]:
    """
    The first query, the number of queries and the lanes of each block of a batch.
    """

def ppr_push(graph: PreparedGraph, *, restart_indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], restart_node: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], restart_value: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], damping: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], eta: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)] | None, node_weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, weighted_node: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)] | None, other_weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, tol: float, threads: int, candidate_bits: Annotated[NDArray[numpy.uint64], dict(order='C', device='cpu', writable=False)] | None, num_candidates: int, largest_degree: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], budget: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], gives_up: bool, prove_order: bool, ids: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], scores: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], counts: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], score_bounds: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], proven: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu')], iterations: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], residual: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], bound: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], converged: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu')], rounds: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], rows: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], entries: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')]) -> None: ...

class PreparedGraph:
    """
    A graph's arrays, with the tables and layouts that walks read. Each is made once, at its first use. Thread-safe.
    """

    def __init__(self, *, directed: bool, num_types: int, indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, edge_type: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)] | None, degree: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], node_of: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], internal_of: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], cached_nodes: int = 262144, strip: int = 65536, block_units: int = 65536) -> None: ...

    def arrays(self, layout: str, *, per_type: bool = False, with_out: bool = False, threads: int = 1) -> dict:
        """
        The fields of PprGraph in a layout: given, by_length or by_window. Read-only views.
        """

    def slices(self, *, per_type: bool = False, threads: int = 1) -> dict:
        """The fields of PprSlices. Read-only views."""

    def tiles(self, *, per_type: bool = False, threads: int = 1) -> dict | None:
        """
        The fields of PprTiles, or None if some rows have too many entries. Read-only views.
        """

    @property
    def counts(self) -> tuple[int, int]:
        """
        The most entries into or out of a node, and the number of nodes with any.
        """

    def degrees(self, per_type: bool) -> dict:
        """The tables of PprGraph derived from degrees. Read-only views."""

    def outgoing(self) -> dict:
        """The rows of outgoing edges, as in PprGraph. Read-only views."""

    @property
    def nbytes(self) -> int:
        """
        Bytes of the tables and layouts made so far, beside the graph's own arrays.
        """

def ppr_lanes(nodes: int, stored: int, queries: int, threads: int) -> list[int]:
    """
    The lanes of the blocks that a batch is divided into, on a graph of this size.
    """

def project(*, indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, scale: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, scores: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], threads: int, status: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu')], out: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')]) -> None: ...

def project_topk(*, indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, scale: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, scores: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], threads: int, status: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu')], out_ids: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], out_scores: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], out_counts: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')]) -> None: ...

class DeviceIncidence:
    """An incidence on a device."""

def device_incidence(queue: DeviceQueue, *, indptr: object, indices: object, weights: object | None) -> DeviceIncidence: ...

def device_project(queue: DeviceQueue, incidence: DeviceIncidence, *, scores: object, scale: object | None, on_device: bool) -> dict: ...

def device_project_topk(queue: DeviceQueue, incidence: DeviceIncidence, *, scores: object, scale: object | None, k: int, on_device: bool) -> dict: ...

def add_passage_seeds(*, node: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], ids: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], scores: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], counts: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], mass: float, out_node: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], out_weight: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')]) -> None:
    """Add hits to seeds, at a mass in proportion to their scores."""

def most_entries(ids: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], counts: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)]) -> int:
    """The most entries that the hits of a query have in compressed rows."""

def add_entity_seeds(*, node: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], ids: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], counts: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, frequency: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], mass: float, out_node: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], out_weight: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')]) -> None:
    """Add the nodes of hits to seeds."""

def cover_seeds(*, node: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], ids: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], scores: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], counts: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, least: float, out_ids: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], out_scores: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], out_counts: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')]) -> None:
    """Choose the hits that cover the seeds."""

def boost_weights(*, weights: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], ids: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], scores: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], counts: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], strength: float) -> None:
    """Boost the weights of hits, in place."""

def device_add_passage_seeds(queue: DeviceQueue, *, node: object, weight: object, ids: object, scores: object, counts: object, mass: float, on_device: bool) -> dict: ...

def device_add_entity_seeds(queue: DeviceQueue, mentions: DeviceIncidence, *, node: object, weight: object, ids: object, counts: object, frequency: object, mass: float, on_device: bool) -> dict: ...

def device_cover_seeds(queue: DeviceQueue, mentions: DeviceIncidence, *, node: object, weight: object, ids: object, scores: object, counts: object, least: float, k: int, on_device: bool) -> dict: ...

def device_boost_weights(queue: DeviceQueue, *, weights: object, ids: object, scores: object, counts: object, strength: float, on_device: bool) -> dict: ...

SIMILARITY_LEAST_TAU: float = 0.0001

SIMILARITY_LARGEST_TAU: float = 10000.0

SIMILARITY_LEAST_FLOOR: float = 1e-30

def similarity(vectors: Annotated[NDArray, dict(order='C', device='cpu', writable=False)], *, type: int, queries: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], allow_mask: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu', writable=False)] | None, allow_shared: bool, tau: float, floor: float, threads: int, out: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')]) -> None: ...

def device_similarity_weights(queue: DeviceQueue, corpus: DeviceCorpus, *, queries: object, mask: object | None, indptr: object | None, ids: object | None, shared: bool, tau: float, floor: float, on_device: bool) -> dict: ...

def sum_terms(*, indptr: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], passages: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu', writable=False)], scores: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], num_passages: int, terms: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu', writable=False)], out_passages: Annotated[NDArray[numpy.int32], dict(order='C', device='cpu')], out_sums: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')]) -> int:
    """Sum the columns of terms; the number of passages with a sum above 0."""
