"""Readers of bytes, each as a target that a fuzzer gives bytes to; what reads them, and what it may raise.

A target either reads its input or refuses it by one of hopfuse's own errors. It fails with any other exception, a
warning of NumPy, a crash, a hang, or much memory. Where a checksum stands, what was read is compared with it.
"""

from __future__ import annotations

import random
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from hopfuse.errors import CODES, HopfuseError, MissingExtraError

CORPUS = Path(__file__).parent / "corpus"
#: Changes bytes as a fuzzer likes, to at most so many.
Plain = Callable[[bytes, int], bytes]
#: Changes an input within its format: the input, the most bytes, a source of chance, and the plain change.
Mutate = Callable[[bytes, int, random.Random, Plain], bytes]


@dataclass(frozen=True)
class Target:
    """A reader of bytes.

    Attributes
    ----------
    read : callable
        Takes the input and an empty folder; reads the input, or raises one of hopfuse's errors.
    runs : int
        Inputs of a seed of ``.ci/soak``: about a quarter of a minute.
    mutate : callable, optional
        Changes an input within its format, such as with checksums that fit; by default bytes are changed.
    words : sequence of str
        Words of the format, which the fuzzer puts into inputs.
    most : int
        Most bytes of an input.
    refuses : type
        The errors by which it may refuse an input.
    """

    name: str
    read: Callable[[bytes, Path], object]
    runs: int = 20_000
    mutate: Mutate | None = None
    words: Sequence[str] = ()
    most: int = 4096
    refuses: type[HopfuseError] = HopfuseError


def inputs_of(target: Target) -> list[Path]:
    """Return the files of a target's corpus."""
    return sorted(path for path in (CORPUS / target.name).glob("*") if path.is_file())


def is_read(target: Target, data: bytes, folder: Path) -> bool:
    """Return whether a target reads an input, False if it refuses it; raise what it must not."""
    with _fresh(folder) as place, warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)  # such as of columns that are not read
        try:
            target.read(data, place)
        except target.refuses as error:
            refusal = error
        else:
            return True
    if isinstance(refusal, MissingExtraError):
        raise refusal  # nothing was tested
    assert refusal.code in CODES, refusal.code
    assert str(refusal), refusal.code
    return False


@contextmanager
def _fresh(folder: Path) -> Iterator[Path]:
    """Yield a folder for one input, emptied afterwards."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        yield Path(place)


def of_file(name: str, read: Callable[[Path], Any]) -> Callable[[bytes, Path], object]:
    """Return a reader of bytes that writes them to a file of this name and reads it."""

    def reads(data: bytes, folder: Path) -> object:
        path = folder / name
        path.write_bytes(data)
        return read(path)

    return reads


#: The module of each target, so that a fuzzer imports no other.
MODULES: dict[str, tuple[str, ...]] = {
    "indexes": ("index", "log", "pointer"),
    "requests": (
        *("search-arrow", "search-json", "passages-json", "retrieval-json", "infer-json", "infer-binary"),
        "config-toml",
    ),
    "documents": (
        *("openie-json", "openie-jsonl", "triples-tsv", "triples-nt", "npy", "qrels-trec", "qrels-jsonl"),
        *("run-trec", "run-jsonl", "run-json", "passages-jsonl", "passages-tsv", "graph-jsonl", "graph-tsv"),
        *("facts-jsonl", "entities-jsonl", "queries-jsonl", "calibrator", "policy-toml"),
    ),
    "stores": (
        *("hipporag-openie", "hipporag-parquet", "passages-parquet", "queries-parquet", "run-parquet"),
        *("triples-parquet", "sqlite", "apoc-json", "apoc-csv", "apoc-arrow"),
    ),
    "answers": ("client-json", "client-error", "client-arrow", "embeddings", "chat", "careless-json"),
    "planted": ("planted-branches", "planted-checksum", "planted-memory"),
}
#: The names of all targets but the planted ones.
NAMES = tuple(name for module, names in MODULES.items() if module != "planted" for name in names)


def target_of(name: str) -> Target:
    """Return the target of a name."""
    module = next(module for module, names in MODULES.items() if name in names)
    return next(one for one in import_module(f"fuzz.{module}").TARGETS if one.name == name)
