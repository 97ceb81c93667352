"""Locate the kernels' sources and their prebuilt images, in the installed package or in a checkout."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ...errors import BackendError
from .kernel_images import SUFFIX, ImagesError, KernelImages

#: Compiler options, the same for prebuilt images and at first use.
OPTIONS = ("--std=c++17", "--fmad=false")

_PACKAGE, _NAME = Path(__file__).resolve().parents[2], __name__.partition(".")[0]


@dataclass(frozen=True)
class KernelSources:
    """The folders ``cuda`` (each .cu file is a unit), ``include`` and ``images`` (which may not exist)."""

    cuda: Path
    include: Path
    images: Path

    @cached_property
    def units(self) -> tuple[Path, ...]:
        """The .cu files, sorted by name."""
        return tuple(sorted(self.cuda.glob("*.cu")))

    @cached_property
    def hash(self) -> str:
        """A hash of all sources and headers with their places."""
        return self._hash_of(self.units)

    def unit_hash(self, unit: Path) -> str:
        """Return a hash of one .cu file, all headers and the compiler's options."""
        return self._hash_of([unit])

    def _hash_of(self, units: Iterable[Path]) -> str:
        own = "".join(f"{unit.name} {_hash(unit)}\n" for unit in units)
        return hashlib.sha256(f"{OPTIONS}\n{own}{self._header_hashes}".encode()).hexdigest()

    @cached_property
    def _header_hashes(self) -> str:
        """The places and hashes of all headers, which any unit may include."""
        folders = (self.cuda, self.include)
        places = ((path.relative_to(folder), path) for folder in folders for path in sorted(folder.rglob("*.h")))
        return "".join(f"{place.as_posix()} {_hash(path)}\n" for place, path in places)

    def compiler_options(self, unit: Path) -> tuple[str, ...]:
        """Return the options that a .cu file is compiled with."""
        return (*OPTIONS, f"-I{unit.parent}", f"-I{self.include}")

    def image_file(self, unit: Path) -> Path:
        """Return the file of a unit's prebuilt images, which may not exist."""
        return self.images / f"{unit.stem}{SUFFIX}"

    def prebuilt(self, unit: Path) -> KernelImages | None:
        """Return a unit's prebuilt images, or None if there are none of this source; raise ImagesError if damaged."""
        try:
            found = KernelImages.read(self.image_file(unit))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise ImagesError(f"it cannot be read: {error.strerror or error}") from error
        return found if (found.unit, found.sources) == (unit.name, self.unit_hash(unit)) else None


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def find_sources(package: Path = _PACKAGE) -> KernelSources:
    """Return the files of the checkout that contains the package, else the installed ones.

    Images are build products; an editable installation keeps them in site-packages.
    """
    installed = [Path(folder) / "kernels" for folder in (str(package), *sys.modules[_NAME].__path__)]
    checkout = package.parents[1] / "kernels"
    folders = [*([checkout] if package.parent.name == "python" else []), *installed]
    for folder in folders:
        if any((folder / "cuda").glob("*.cu")):
            images = next((other / "images" for other in installed if (other / "images").is_dir()), folder / "images")
            return KernelSources(folder / "cuda", folder / "include", images)
    raise BackendError(
        "unavailable",
        None,
        "the sources of the CUDA kernels are missing (searched {names}); reinstall hopfuse",
        names=", ".join(map(str, folders)),
    )
