"""The closed loop: wrk keeps a number of connections busy with requests from files."""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import UnavailableError

#: A script for wrk: makes requests from the bodies at the start, and prints wrk's figures at the end.
SCRIPT = """
local requests, at = {}, 0
function init(args)
  for line in io.lines(args[1]) do
    local file = io.open(line, "rb")
    requests[#requests + 1] = wrk.format("POST", nil, {["Content-Type"] = args[2]}, file:read("*a"))
    file:close()
  end
end
function request()
  at = at % #requests + 1
  return requests[at]
end
function done(summary, latency, _)
  local e = summary.errors
  io.write(string.format(
    '\\nresult {"requests": %d, "seconds": %f, "refused": %d, "lost": %d, "p50": %f, "p99": %f, "max": %f}\\n',
    summary.requests, summary.duration / 1e6, e.status, e.connect + e.read + e.write + e.timeout,
    latency:percentile(50) / 1e6, latency:percentile(99) / 1e6, latency.max / 1e6))
end
"""
#: Timeout of a request in wrk, in seconds.
TIMEOUT = 30


def require() -> None:
    """Raise UnavailableError if wrk is not installed."""
    if shutil.which("wrk") is None:
        raise UnavailableError("wrk is absent: apt install wrk")


class Bodies:
    """A folder with a file for each request's body, for wrk.

    Parameters
    ----------
    folder : Path
        It is made.
    bodies : sequence of bytes
    kind : str
        Content type.
    """

    def __init__(self, folder: Path, bodies: Sequence[bytes], kind: str = "application/json") -> None:
        folder.mkdir()
        self.folder, self.kind, self.bodies = folder, kind, bodies
        files = [folder / f"{at}.body" for at in range(len(bodies))]
        for file, body in zip(files, bodies, strict=True):
            file.write_bytes(body)
        self.files = [str(file) for file in files]
        (folder / "list").write_text("".join(f"{file}\n" for file in files))
        (folder / "script.lua").write_text(SCRIPT)


def closed(url: str, bodies: Bodies, connections: int, seconds: float, path: str = "/v1/search") -> dict[str, Any]:
    """Return wrk's figures, and its own CPU seconds.

    Returns
    -------
    dict
        ``requests`` that were answered and the ``refused`` (above 399) among them, ``lost`` ones, ``seconds``, and
        latencies in seconds: ``p50``, ``p99``, ``max``.
    """
    require()
    command = ["wrk", "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", f"--timeout={TIMEOUT}s"]
    command += ["-s", str(bodies.folder / "script.lua"), url + path, "--", str(bodies.folder / "list"), bodies.kind]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + TIMEOUT + 30, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise UnavailableError(f"wrk ended with status {done.returncode}: {done.stderr.strip()[-200:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {**parsed(done.stdout), "client_cpu": cpu}


def parsed(output: str) -> Mapping[str, Any]:
    """Return the figures that the script printed.

    Examples
    --------
    >>> parsed('Running 1s test\\nresult {"requests": 3}\\n')
    {'requests': 3}
    """
    line = next(line for line in output.splitlines() if line.startswith("result "))
    found: Mapping[str, Any] = json.loads(line.removeprefix("result "))
    return found
