"""Compile a C++ file of this folder for this processor, and load it."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import UnavailableError


@contextmanager
def library(source: str, *flags: str) -> Iterator[ctypes.CDLL]:
    """Yield the compiled file ``source``.

    Raises
    ------
    UnavailableError
        There is no compiler, or it rejects the file.
    """
    wanted = os.environ.get("CXX")
    compiler = next(filter(None, map(shutil.which, (wanted,) if wanted else ("c++", "g++", "clang++"))), None)
    if compiler is None:
        found = f"CXX is {wanted!r}, which is not found" if wanted else "none of c++, g++, clang++ is installed"
        raise UnavailableError(f"it needs a C++ compiler: {found}")
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / "loops.so"
        command = (compiler, "-std=c++17", "-O3", "-march=native", *flags, "-shared", "-fPIC")
        command = (*command, str(Path(__file__).with_name(source)), "-o", str(built))
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise UnavailableError(f"{compiler} cannot compile {source}: {done.stderr.strip()[-400:]}")
        yield ctypes.CDLL(str(built))
