"""CPython for 64-bit Arm on this machine: Debian's packages and wheels, run by qemu's user mode.

Nothing is installed on the machine, and no architecture is added to it.
"""

from __future__ import annotations

import shutil
import sys
import zipfile
from pathlib import Path

from debian import Debian
from workplace import CACHE, Workplace

COMPILER = "aarch64-linux-gnu-g++"
CROSS = ("-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64")
# The CPython of Debian 12, and what it needs.
PYTHON = "3.11"
PACKAGES = (f"libpython{PYTHON}-dev", f"python{PYTHON}-minimal", "libstdc++6")
WHEELS = ("--platform", "manylinux_2_28_aarch64", "--python-version", PYTHON, "--only-binary", ":all:")


def system(w: Workplace) -> Path:
    """Return a folder with CPython, its headers and libraries, as an Arm machine with Debian 12 has them."""

    def make(target: Path) -> None:
        Debian(w, CACHE / "debian-arm64", ("bookworm",), "arm64").unpack(target, *PACKAGES)
        # Debian's pyconfig.h includes that of the architecture from /usr/include, where this machine's would be found.
        headers = target / "usr" / "include"
        shutil.copy(headers / "aarch64-linux-gnu" / f"python{PYTHON}" / "pyconfig.h", headers / f"python{PYTHON}")

    return w.once("arm-system", make)


def environment(w: Workplace, *packages: str) -> Path:
    """Return the programs' folder of an environment with the wheel, its native module for Arm, and these packages.

    Its ``python`` is a script, so processes that a test starts by ``sys.executable`` run on Arm as well.
    """

    def make(target: Path) -> None:
        base = system(w) / "usr" / "bin"
        (target / "bin").mkdir(parents=True)
        (target / "pyvenv.cfg").write_text(f"home = {base}\n")
        python = target / "bin" / "python"
        emulated = f'qemu-aarch64-static -0 "$0" -L {system(w)} {base}/python{PYTHON}'
        python.write_text(f'#!/bin/sh\nexec {emulated} "$@"\n')
        python.chmod(0o755)
        site = target / "lib" / f"python{PYTHON}" / "site-packages"
        w.run(sys.executable, "-m", "pip", "install", *WHEELS, "--target", site, "numpy", *packages)
        zipfile.ZipFile(w.wheel()).extractall(site)
        for module in (site / "hopfuse").glob("_native.*.so"):
            module.unlink()
        shutil.copy(native_module(w, python), site / "hopfuse")

    return w.once("venv-arm", make) / "bin"


def native_module(w: Workplace, python: Path) -> Path:
    """Return the native module for Arm, compiled on this machine; ``python`` says how it is named."""
    headers = system(w) / "usr" / "include" / f"python{PYTHON}"
    paths = (f"-DPython_EXECUTABLE={python}", f"-DPython_INCLUDE_DIR={headers}", f"-Dnanobind_DIR={w.nanobind()}")
    program = w.build("arm-module", COMPILER, *CROSS, "-DSKBUILD=2", *paths)
    (module,) = program.parent.glob("_native.*aarch64*.so")
    return module
