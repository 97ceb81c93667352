"""Restart servers that share a port, in turn and under load, and fail if a request is lost.

``python restarts.py INDEX FOLDER BODY`` prints how many requests with this body each client sent.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import processes

CLIENTS, RESTARTS = 8, 16
#: Read once, since reading them takes longer than most requests.
CERTIFICATES = ssl.create_default_context()


def asking(url: str, body: dict[str, Any], stop: threading.Event, *, keep: bool) -> int:
    """Send requests until told to stop, all by one connection as long as the server keeps it, or each by its own."""
    sent, once = 0, partial(httpx.post, verify=CERTIFICATES, timeout=60)
    with httpx.Client(timeout=60) as client:
        send = client.post if keep else once
        while not stop.is_set():
            assert len(send(f"{url}/v1/search", json=body).json()["results"][0]["hits"]) == 3
            sent += 1
    return sent


def restart_in_turn(index: str, folder: Path, body: dict[str, Any]) -> list[int]:
    """Return how many requests each client sent while servers were restarted."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config, told = folder / "serve.toml", folder / "told"
    config.write_text(f"port = {port}\nshare_port = true\nthreads = 1\n", encoding="utf-8")
    command = [sys.executable, "-m", "hopfuse", "serve", f"cities={index}", "--config", str(config)]
    stop, servers = threading.Event(), list[Any]()

    def start() -> None:
        environment = {**os.environ, "NOTIFY_SOCKET": str(told)}
        servers.append(processes.Popen(command, stderr=subprocess.DEVNULL, env=environment))
        assert systemd.recv(100) == b"READY=1"

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd, ThreadPoolExecutor(CLIENTS) as pool:
        systemd.bind(str(told))
        systemd.settimeout(600)  # a guard against a hang: a busy machine may start it late
        try:
            start()
            start()
            url = f"http://127.0.0.1:{port}"
            clients = [pool.submit(asking, url, body, stop, keep=at % 2 == 0) for at in range(CLIENTS)]
            for _ in range(RESTARTS):
                servers[0].terminate()
                assert servers.pop(0).wait(600) in (0, -signal.SIGTERM)
                start()
            stop.set()
            return [client.result() for client in clients]
        finally:
            stop.set()
            for one in servers:
                one.kill()
                one.wait()


if __name__ == "__main__":
    print(*restart_in_turn(sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])))
