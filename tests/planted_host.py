"""Bugs planted in the host code of a device backend: a piece of source, its replacement, and the test that finds it.

Kinds: ``order`` of streams, ``lifetime`` of memory, ``race`` of threads, ``device`` that is current.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import hopfuse.backends.cuda as package
import pytest

#: The modules to reload with a bug in one of them, each after those that it imports.
MODULES = (
    "recording_memory", "cublas", "cupy_errors", "cupy_modules", "cupy_interop", "cupy_capture", "cupy_staging",
    "cupy_runtime", "device_ops", "recordings",
)  # fmt: skip


class Bug(NamedTuple):
    name: str
    kind: str
    module: str
    right: str  # occurs once
    wrong: str
    found_by: str  # a test of test_cupy_runtime or test_cupy_lifetimes


def load_with(monkeypatch: pytest.MonkeyPatch, bug: Bug | None) -> Any:
    """Return CupyRuntime, DeviceOps and Recordings of modules with the bug."""
    folder = Path(str(package.__file__)).parent
    loaded: dict[str, ModuleType] = {}
    for name in MODULES:
        source = (folder / f"{name}.py").read_text(encoding="utf-8")
        if bug is not None and name == bug.module:
            assert source.count(bug.right) == 1, f"{bug.name}: {bug.module} has {source.count(bug.right)} such places"
            source = source.replace(bug.right, bug.wrong)
        module = loaded[name] = ModuleType(f"{package.__name__}.{name}")
        module.__package__, module.__file__ = package.__name__, str(folder / f"{name}.py")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setattr(package, name, module, raising=False)
        exec(compile(source, module.__file__, "exec"), module.__dict__)
    return SimpleNamespace(
        CupyRuntime=loaded["cupy_runtime"].CupyRuntime,
        DeviceOps=loaded["device_ops"].DeviceOps,
        Recordings=loaded["recordings"].Recordings,
    )


RUNTIME, CAPTURE, MEMORY, ANY_CASE = "cupy_runtime", "cupy_capture", "recording_memory", "explain_says_what_runs"
STAGING = "cupy_staging"
ON_DEVICE, CURRENT = "            with self._device:\n", "            if True:\n"
BUGS = [
    # ---- Order of streams
    Bug("the first run overtakes the caller", "order", CAPTURE, "stream.wait_event(caller.record())", "caller.record()",
        "the_first_run_sees_what_the_caller_queued"),
    Bug("nobody waits for the first run", "order", CAPTURE, "    stream.synchronize()  #", "    #",
        "the_recording_is_queued_on_the_callers_stream"),
    Bug("what is resident is not waited for", "order", RUNTIME,
        'translated(self._cupy, "an upload"):\n                self',
        'translated(self._cupy, "an upload"):\n                return\n                self',
        "resident_arrays_may_be_read_on_any_stream"),
    Bug("a read-back does not wait", "order", RUNTIME, "if to_host or (from_host and not stays)",
        "if from_host and not stays", "uploaded_arrays_are_downloaded_unchanged"),
    Bug("an upload does not wait", "order", RUNTIME, "                # ``given`` may be gone",
        "                return out\n                #",
        "an_upload_is_over_when_it_returns"),
    Bug("a copy of pageable memory does not wait", "order", RUNTIME, "if to_host or (from_host and not stays)",
        "if to_host", "a_copy_from_pageable_memory_is_over_when_it_returns"),
    Bug("memory is cleared on the legacy stream", "order", RUNTIME, "0, array.nbytes, self._stream())",
        "0, array.nbytes, 0)", "memory_is_cleared_on_the_callers_stream"),
    Bug("staged memory is overwritten before it is copied", "order", STAGING, "                event.synchronize()",
        "                pass", "staged_memory_is_used_again"),
    Bug("only the last staged copy is waited for", "order", STAGING, "for event in self._copied:",
        "for event in self._copied[-1:]:", "staged_memory_is_used_again"),
    Bug("staged copies go to the legacy stream", "order", STAGING, "runtime.memcpyHostToDevice, int(stream.ptr))",
        "runtime.memcpyHostToDevice, 0)", "staged_memory_is_used_again"),
    Bug("a staged array is copied from where it is", "order", STAGING,
        "target, host_address(part), part.nbytes", "target, host_address(arrays[0]), part.nbytes",
        "a_small_upload_has_read_its_array"),
    Bug("a read-back of a block does not wait", "order", RUNTIME,
        "runtime.memcpyDeviceToHost, stream)\n            runtime.stream",
        "runtime.memcpyDeviceToHost, stream)\n            lambda: runtime.stream",
        "arrays_of_one_block_come_down"),
    Bug("replays run where they were recorded", "order", CAPTURE, "launch(self._cupy.cuda.get_current_stream())",
        "launch(self._recorded_on)", "the_recording_is_queued_on_the_callers_stream"),
    Bug("calls on the device overlap", "order", "recordings", "if not self._num_statuses:", "if False:",
        "calls_on_two_streams_do_not_overlap"),
    Bug("products go to the legacy stream", "order", RUNTIME, "self._stream(), held)", "0, held)",
        "a_product_is_queued_on_the_callers_stream"),
    # ---- Lifetime of memory
    Bug("a recording's arrays do not hold their memory", "lifetime", CAPTURE, "held.begin + nbytes, held)",
        "held.begin + nbytes, None)", "results_outlive_the_recording"),
    Bug("a recording does not hold its memory", "lifetime", CAPTURE, "cupy, graph, capture, stream\n",
        "cupy, graph, None, stream\n", "a_replay_reads_the_host_again"),
    Bug("pinned memory of a recording is not kept", "lifetime", RUNTIME, "capture.host.append(source)", "pass",
        "a_recording_keeps_the_pinned_memory_that_it_reads"),
    Bug("constants come from the recording's own memory", "lifetime", RUNTIME, "capture.allocate_constant",
        "capture.allocate", "a_replay_reads_the_host_again"),
    Bug("a caller's array is not held", "lifetime", "cupy_interop", "itemsize, array, found)", "itemsize, None, found)",
        "a_callers_array_is_held"),
    Bug("a recording keeps no residents", "lifetime", "device_ops",
        "self._thread.log.residents.extend(residents(self.runtime, held))", "pass",
        "a_recording_keeps_what_is_resident"),
    Bug("what is resident is the recording's", "lifetime", RUNTIME, "        self._local.resident = True\n", "",
        "resident_arrays_are_not_part_of_a_recording"),
    Bug("a product has no workspace of its own", "lifetime", RUNTIME,
        "None if self._capture is None else self.empty(WORKSPACE_BYTES, np.uint8)", "None",
        "a_product_in_a_recording_has_a_workspace"),
    Bug("memory of recordings is of a pool", "lifetime", RUNTIME, "RecordingMemory(self._cupy.cuda.Memory,",
        "RecordingMemory(self._cupy.cuda.memory.MemoryPool().malloc,", "a_dropped_recording_gives_its_memory_back"),
    Bug("what a failed recording made is kept", "lifetime", RUNTIME, "capture.tape.abandon()", "capture.tape",
        "a_recording_that_fails_gives_its_memory_back"),
    Bug("a block comes back while it is in use", "lifetime", MEMORY, "        return Lease(self, place)",
        "        self.release(place)\n        return Lease(self, place)", "recordings_with_one_memory"),
    Bug("results lie where dropped memory was", "lifetime", MEMORY, "{place.number for _, place in self._given}",
        "set()", "results_lie_side_by_side"),
    Bug("out of memory is final", "lifetime", RUNTIME, "        gc.collect()  #",
        "        raise no_room(nbytes, 0, 0)\n        #",
        "memory_that_only_caches_hold"),
    Bug("out of memory collects nothing", "lifetime", RUNTIME, "        gc.collect()  #", "        #",
        "memory_that_garbage_holds"),
    # ---- Races of threads
    Bug("all threads record", "race", RUNTIME, "self._local = threading.local()",
        "self._local = type('Local', (), {})()", "other_threads_go_on_beside_a_recording"),
    Bug("threads stage in the same memory", "race", RUNTIME, "self._idle.pop()", "self._idle[-1]",
        "two_threads_stage_apart"),
    Bug("products take no turns", "race", "cublas", "        with self._lock:\n            library",
        "        if True:\n            library", "products_of_two_threads_take_turns"),
    Bug("modules are loaded by every thread", "race", "cupy_modules",
        "            with self._lock:\n                function", "            if True:\n                function",
        "two_threads_load_a_module_once"),
    # ---- The current device
    Bug("cuBLAS's handle is made on the current device", "device", RUNTIME, f"{ON_DEVICE}                held =",
        f"{CURRENT}                held =", "a_product_in_a_recording_has_a_workspace"),
    Bug("launches go to the current device", "device", RUNTIME, "        with self._device:\n            function",
        "        if True:\n            function", "a_file_is_loaded_when_a_kernel"),
    Bug("memory is cleared on the current device", "device", RUNTIME,
        'self._device, translated(self._cupy, "clearing memory")', 'translated(self._cupy, "clearing memory")',
        "uploaded_arrays_are_downloaded_unchanged"),
    Bug("copies go to the current device", "device", RUNTIME, 'self._device, translated(self._cupy, "a copy")',
        'translated(self._cupy, "a copy")', "uploaded_arrays_are_downloaded_unchanged"),
    Bug("replays go to the current device", "device", CAPTURE, "self._cupy.cuda.Device(self._device), translated",
        "translated", "a_replay_reads_the_host_again"),
    Bug("memory is given back on the current device", "device", RUNTIME,
        "        with self._device:\n            self._cupy.get", "        if True:\n            self._cupy.get",
        "an_out_of_memory_error_names_the_request"),
    Bug("free memory is the current device's", "device", RUNTIME,
        'self._device, translated(self._cupy, "asking for free', 'translated(self._cupy, "asking for free',
        "an_out_of_memory_error_names_the_request"),
]  # fmt: skip
