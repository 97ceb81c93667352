"""nginx with the configuration of examples/serve/nginx.conf, on free ports, with a certificate made for the test."""

from __future__ import annotations

import contextlib
import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

SITE = Path(__file__).parents[2] / "examples" / "serve" / "nginx.conf"
NAME = "search.example"
#: What Debian's nginx.conf says around the files of conf.d, with other folders.
AROUND = """daemon off; master_process off; pid {folder}/pid; error_log stderr warn; worker_rlimit_nofile 1024;
events {{ worker_connections 512; }}
http {{
    access_log off;
    {temporary}
    include {folder}/site.conf;
}}
"""


def program(name: str, package: str) -> str:
    found = shutil.which(name, path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    if found is None:
        pytest.skip(f"{name} is not installed (Debian's package {package})")
    return found


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


def site(folder: Path, ports: Sequence[int], tls: int, plain: int) -> str:
    """The example with the test's ports and certificate, and otherwise unchanged."""
    text = SITE.read_text()
    (line,) = re.findall(r"^ *server 127\.0\.0\.1:8080.*$", text, re.M)
    text = text.replace(line, "\n".join(line.replace("8080", str(port)) for port in ports))
    for before, after in (
        ("listen 443 ", f"listen 127.0.0.1:{tls} "),
        ("listen 80;", f"listen 127.0.0.1:{plain};"),
        ("/etc/ssl/search.example.", f"{folder}/site."),
    ):
        assert before in text
        text = text.replace(before, after)
    return text


@contextlib.contextmanager
def nginx(folder: Path, ports: Sequence[int]) -> Iterator[tuple[int, int, ssl.SSLContext]]:
    """The ports for TLS and without, and what trusts the certificate, while nginx passes on to servers on ``ports``."""
    binary, openssl = program("nginx", "nginx-light"), program("openssl", "openssl")
    folder.mkdir(parents=True, exist_ok=True)
    make = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    names = ["-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME},DNS:localhost"]
    files = ["-keyout", str(folder / "site.key"), "-out", str(folder / "site.pem")]
    subprocess.run([*make, *names, *files], check=True, capture_output=True)
    tls, plain = free_port(), free_port()
    (folder / "site.conf").write_text(site(folder, ports, tls, plain))
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    (folder / "nginx.conf").write_text(AROUND.format(folder=folder, temporary=temporary))
    command = [binary, "-e", "stderr", "-p", str(folder), "-c", str(folder / "nginx.conf")]
    checked = subprocess.run([*command, "-t"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    assert "[warn]" not in checked.stderr.replace('the "user" directive', ""), checked.stderr
    with (folder / "log").open("w") as log, subprocess.Popen(command, stderr=log) as process:
        try:
            while True:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", tls)):
                    break
                assert process.poll() is None, (folder / "log").read_text()
            yield tls, plain, ssl.create_default_context(cafile=str(folder / "site.pem"))
        finally:
            process.terminate()
            process.wait()
