"""Loops in C++ that the bench compiles for this processor, beside the file that names them."""

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
    """The compiled file ``source`` of this folder.

    Raises
    ------
    UnavailableError
        No compiler is here, or it does not take the file.
    """
    wanted = os.environ.get("CXX")
    compiler = next(filter(None, map(shutil.which, (wanted,) if wanted else ("c++", "g++", "clang++"))), None)
    if compiler is None:
        here = f"CXX is {wanted!r}, which is not found" if wanted else "none of c++, g++, clang++ is there"
        raise UnavailableError(f"it needs a C++ compiler: {here}")
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / "loops.so"
        command = (compiler, "-std=c++17", "-O3", "-march=native", *flags, "-shared", "-fPIC")
        command = (*command, str(Path(__file__).with_name(source)), "-o", str(built))
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise UnavailableError(f"{compiler} does not compile {source}: {done.stderr.strip()[-400:]}")
        yield ctypes.CDLL(str(built))
