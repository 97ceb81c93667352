"""The quick self-test of a GPU in a process of its own: a kernel that crashes or hangs ends only that process."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import warnings
from typing import TYPE_CHECKING, NamedTuple

from ..errors import BackendError, DeviceMemoryError

if TYPE_CHECKING:
    from .cuda.found_device import CudaOps

__all__ = ["difference_in_process", "main"]

#: Seconds that the process may take, for a test that takes some; kernels have been compiled before it starts.
DEADLINE = 180.0

#: The program; what it may import, and the number of the device, come on its standard input.
_PROGRAM = (
    "import json, sys\n"
    "given = json.load(sys.stdin)\n"
    "sys.path[:] = given['path']\n"
    "from hopfuse.backends.selftest_process import main\n"
    "main(given['ordinal'])\n"
)
#: What the line of the result begins with; libraries may print others.
_RESULT = "hopfuse selftest: "


class Verdict(NamedTuple):
    """The result of the self-test.

    Attributes
    ----------
    difference : str or None
        How results differ from the CPU's.
    cooperative : bool
        Whether walks in one launch may be used.
    warnings : list of str
    out_of_memory : bool
        Whether ``difference`` says that the device has no memory for the test.
    """

    difference: str | None
    cooperative: bool
    warnings: list[str]
    out_of_memory: bool = False


def difference_in_process(backend: CudaOps) -> str | None:
    """Run the quick self-test of a device in another process; return how its results differ from the CPU's, or None."""
    backend.code.compile_missing()  # which takes its time, and is then read from the cache
    ordinal = backend.runtime.device.ordinal
    verdict = _verdict(ordinal) if _takes_another_process(backend) else _tested(ordinal)
    if verdict.out_of_memory:
        raise DeviceMemoryError("memory", None, "{said}", said=verdict.difference)
    if not verdict.cooperative:
        backend.runtime.cooperative = False
    for message in verdict.warnings:
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    return verdict.difference


def _takes_another_process(backend: CudaOps) -> bool:
    """Return whether there is an interpreter to start, and whether the device takes a second process."""
    is_interpreter = bool(sys.executable) and not getattr(sys, "frozen", False)  # else a program with Python inside
    return is_interpreter and not backend.runtime.device.is_exclusive


def _verdict(ordinal: int) -> Verdict:
    given = json.dumps({"path": sys.path, "ordinal": ordinal})
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        output, _ = process.communicate(given, timeout=DEADLINE)
    except subprocess.TimeoutExpired:
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # a process that hangs in the driver may not end
            process.communicate(timeout=5.0)
        return Verdict(f"its self-test did not end within {DEADLINE:.0f} seconds", True, [])
    lines = [line for line in output.splitlines() if line.startswith(_RESULT)]
    if process.returncode or not lines:
        return Verdict(f"its self-test {_end_of(process.returncode)}", True, [])
    return Verdict(**json.loads(lines[-1].removeprefix(_RESULT)))


def _end_of(code: int) -> str:
    """Describe how a process ended."""
    if code >= 0:
        return f"ended with the exit status {code}; its standard error says more"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = str(-code)
    return f"was ended by the signal {name}"


def main(ordinal: int) -> None:
    """Run the self-test in this process, and print its result."""
    print(_RESULT + json.dumps(_tested(ordinal)._asdict()), flush=True)


def _tested(ordinal: int) -> Verdict:
    from .cuda.found_device import make_backend
    from .selftest import difference

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RuntimeWarning)
        try:
            backend = make_backend(ordinal)
            found, is_full = difference(backend), False
            cooperative = backend.runtime.cooperative
        except DeviceMemoryError as error:
            found, is_full, cooperative = str(error), True, True
        except BackendError as error:
            found, is_full, cooperative = f"its self-test failed: {error}", False, True
    said = [str(one.message) for one in caught if issubclass(one.category, RuntimeWarning)]
    return Verdict(found, cooperative, said, is_full)
