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
        No compiler is here.
    """
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CXX", "c++"), "g++", "clang++"))), None)
    if compiler is None:
        raise UnavailableError("it needs a C++ compiler: none of $CXX, c++, g++, clang++ is there")
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / "loops.so"
        command = (compiler, "-std=c++17", "-O3", "-march=native", *flags, "-shared", "-fPIC")
        subprocess.run((*command, str(Path(__file__).with_name(source)), "-o", str(built)), check=True)
        yield ctypes.CDLL(str(built))
