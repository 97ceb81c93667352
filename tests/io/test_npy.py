"""Refuse what is no .npy file by the file's name, whatever NumPy makes of it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hopfuse import Index
from hopfuse.errors import InputError
from hopfuse.io import read_npy
from numpy.lib.format import write_array_header_1_0
from refusals import refused


def savez(path: Path) -> None:
    with open(path, "wb") as file:
        np.savez(file, a=np.eye(2), b=np.eye(3))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK\x03\x04",
        b"PK\x05\x06" + bytes(18),
        b"garbage",
        b"\x93NUMPY\x01\x00",
        b"\x93NUMPY\x02\x00\x05\x00\x00\x00{'a'\n",
    ],
)
@pytest.mark.parametrize("mapped", [True, False])
def test_junk_is_refused(tmp_path: Path, content: bytes, mapped: bool) -> None:
    path = tmp_path / "v.npy"
    path.write_bytes(content)
    with refused(InputError, "type" if content[:2] == b"PK" else "syntax", "--vectors", path=path):
        read_npy(path, "--vectors", mapped=mapped)


def test_an_archive_is_refused_and_the_fix_is_named(tmp_path: Path) -> None:
    savez(tmp_path / "v.npy")
    with refused(InputError, "type", "--vectors"):
        read_npy(tmp_path / "v.npy", "--vectors")
    with refused(InputError, "type", "vectors"):
        Index.build(passages=[{"text": "a"}], vectors=tmp_path / "v.npy")


def test_objects_and_absent_files_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "o.npy", np.array([{"a": 1}], object), allow_pickle=True)
    with refused(InputError, "syntax", "vectors"):
        read_npy(tmp_path / "o.npy", "vectors")
    with refused(InputError, "missing", "vectors"):
        read_npy(tmp_path / "none.npy", "vectors")


@pytest.mark.parametrize("kind", ["<U0", "|S0", "|V0"])
@pytest.mark.parametrize("mapped", [True, False])
def test_values_without_bytes_are_refused(tmp_path: Path, kind: str, mapped: bool) -> None:
    path = tmp_path / "v.npy"
    with open(path, "wb") as file:
        write_array_header_1_0(file, {"descr": kind, "fortran_order": False, "shape": (5, 0)})
    with refused(InputError, "syntax", "vectors", path=path):
        read_npy(path, "vectors", mapped=mapped)


def test_an_array_comes_mapped_or_read(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.arange(6.0).reshape(3, 2))
    mapped, read = (read_npy(tmp_path / "v.npy", "vectors", mapped=mapped) for mapped in (True, False))
    assert np.array_equal(mapped, read)
    assert not mapped.flags.writeable
    assert type(mapped) is np.ndarray


@pytest.mark.parametrize("shape", [(), (3,), (0,), (0, 5), (2, 3)])
@pytest.mark.parametrize("kind", ["<f4", ">f4", "<4f", "|V4", "|S3"])
def test_an_unusual_header_is_read_alike_mapped_or_not(tmp_path: Path, shape: tuple[int, ...], kind: str) -> None:
    path = tmp_path / "v.npy"
    with open(path, "wb") as file:
        write_array_header_1_0(file, {"descr": kind, "fortran_order": len(shape) > 1, "shape": shape})
        file.write(bytes(range(np.dtype(kind).itemsize * math.prod(shape))))
    mapped, read = (read_npy(path, "vectors", mapped=mapped) for mapped in (True, False))
    assert (mapped.dtype, mapped.shape, mapped.tobytes()) == (read.dtype, read.shape, read.tobytes())
    assert read.flags.writeable
