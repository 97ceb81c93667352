"""Restart servers that share a port, in turn and under load, in a network of its own; fail if a request is lost.

``python restarts.py MIGRATES INDEX FOLDER`` prints how many requests each client sent. MIGRATES is the setting by which
Linux gives a connection whose handshake is under way to another server of the port.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

CLIENTS, RESTARTS = 8, 4
BODY = {"queries": [{"text": "What is far from Ankara?", "vector": [1.0] * 8}], "k": 3}
#: From linux/sockios.h and linux/if.h.
SIOCSIFFLAGS, IFF_UP = 0x8914, 1


def start_network(migrates: str) -> None:
    """Bring up the loopback interface, and let connections go to another server."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
    Path(migrates).write_text("1", encoding="ascii")


def asking(url: str, stop: threading.Event, *, keep: bool) -> int:
    """Send requests until told to stop, all by one connection as long as the server keeps it, or each by its own."""
    sent = 0
    with httpx.Client(timeout=60) as client:
        while not stop.is_set():
            send = client.post if keep else httpx.post
            assert len(send(f"{url}/v1/search", json=BODY).json()["results"][0]["hits"]) == 3
            sent += 1
    return sent


def restart_in_turn(index: str, folder: Path) -> list[int]:
    """Return how many requests each client sent while servers were restarted."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config, told = folder / "serve.toml", folder / "told"
    config.write_text(f"port = {port}\nshare_port = true\nthreads = 1\n", encoding="utf-8")
    command = [sys.executable, "-m", "hopfuse", "serve", f"cities={index}", "--config", str(config)]
    stop, servers = threading.Event(), list[subprocess.Popen[bytes]]()

    def start() -> None:
        environment = {**os.environ, "NOTIFY_SOCKET": str(told)}
        servers.append(subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment))
        assert systemd.recv(100) == b"READY=1"

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd, ThreadPoolExecutor(CLIENTS) as pool:
        systemd.bind(str(told))
        systemd.settimeout(600)  # a guard against a hang: a busy machine may start it late
        try:
            start()
            start()
            url = f"http://127.0.0.1:{port}"
            clients = [pool.submit(asking, url, stop, keep=at % 2 == 0) for at in range(CLIENTS)]
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
    start_network(sys.argv[1])
    print(*restart_in_turn(sys.argv[2], Path(sys.argv[3])))
