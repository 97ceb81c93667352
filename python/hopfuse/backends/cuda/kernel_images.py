"""Prebuilt code of a .cu file: one file with all its images, which the build of a wheel makes.

The file begins with a line of its format's name and of the hash of the next line, its head. The head is JSON: the unit,
the hash of its sources and options, the release of the compiler, and for each image its target, its sizes and its hash.
The images follow in that order, compressed by zlib to a fifth of their size; they are unpacked in milliseconds.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

_MAGIC = b"hopfuse kernel images 1 "
SUFFIX = ".images"


class ImagesError(Exception):
    """A file of images is damaged; the message says how."""


class _Place(NamedTuple):
    begin: int
    packed: int
    size: int
    sha256: str


@dataclass(frozen=True)
class KernelImages:
    """A file of images whose head has been read and agrees with the file's size."""

    unit: str
    sources: str
    compiler: str
    places: Mapping[str, _Place]
    content: bytes

    @classmethod
    def read(cls, path: Path) -> KernelImages:
        """Read a file; raise ImagesError if it is damaged, OSError if it cannot be read."""
        content = path.read_bytes()
        first, _, rest = content.partition(b"\n")
        head = rest.partition(b"\n")[0]
        if first != _first_line(head):
            raise ImagesError("its head is not the one that was built")
        try:
            given = json.loads(head)
            places, begin = {}, len(first) + len(head) + 2
            for image in given["images"]:
                place = _Place(begin, int(image["packed"]), int(image["size"]), image["sha256"])
                places[str(image["target"])] = place
                begin += place.packed
            named = given["unit"], given["sources"], given["compiler"]
        except (ValueError, KeyError, TypeError) as error:
            raise ImagesError(f"its head cannot be read: {error}") from error
        if begin != len(content):
            raise ImagesError(f"it has {len(content)} bytes, and its head states {begin}")
        return cls(*named, places, content)

    @property
    def targets(self) -> tuple[str, ...]:
        """What there is: ``sm_N`` is a cubin, ``compute_N`` PTX."""
        return tuple(self.places)

    def image(self, target: str) -> bytes:
        """Return an image; raise ImagesError if its bytes are not those that were built."""
        place = self.places[target]
        packed = self.content[place.begin : place.begin + place.packed]
        try:
            image = zlib.decompressobj().decompress(packed, place.size)
        except (zlib.error, ValueError) as error:
            raise ImagesError(f"its image for {target} cannot be unpacked: {error}") from error
        if hashlib.sha256(image).hexdigest() != place.sha256:
            raise ImagesError(f"its image for {target} is not the one that was built")
        return image


def pack(unit: str, sources: str, compiler: str, images: Mapping[str, bytes]) -> bytes:
    """Return the content of a file of images.

    Parameters
    ----------
    unit : str
        The name of the .cu file.
    sources : str
        ``KernelSources.unit_hash`` of it.
    compiler : str
        The release of NVRTC.
    images : mapping
        By target.
    """
    packed = {target: zlib.compress(image, 9) for target, image in images.items()}
    about = [
        {
            "target": target,
            "packed": len(packed[target]),
            "size": len(image),
            "sha256": hashlib.sha256(image).hexdigest(),
        }
        for target, image in images.items()
    ]
    head = json.dumps({"unit": unit, "sources": sources, "compiler": compiler, "images": about}).encode()
    return b"".join([_first_line(head), b"\n", head, b"\n", *packed.values()])


def _first_line(head: bytes) -> bytes:
    return _MAGIC + hashlib.sha256(head).hexdigest().encode()
