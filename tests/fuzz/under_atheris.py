"""Fuzz a target in this process, which Atheris ends: ``python -m fuzz.under_atheris TARGET [options of libFuzzer]``.

hopfuse is imported here under Atheris, which records the branches that an input takes, and the corpus is read once, so
that what readers import late is recorded, too. Memory is limited to what the process then has and :data:`ROOM` more.
"""

from __future__ import annotations

import os
import random
import resource
import sys
import tempfile
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType

#: Bytes that readers may take for inputs of a few kilobytes.
ROOM = 1 << 30


class SourceFiles:
    """Finds modules of hopfuse as plain files: Atheris records nothing of what an editable installation reads."""

    @classmethod
    def find_spec(cls, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return what other finders have of a module, with Python's own loader if it is a source file."""
        if name.partition(".")[0] != "hopfuse":
            return None
        others = (one for one in sys.meta_path if one is not cls and not type(one).__module__.startswith("atheris"))
        spec = next(filter(None, (one.find_spec(name, path, target) for one in others)), None)
        if spec is not None and spec.origin is not None and spec.origin.endswith(".py"):
            spec.loader = SourceFileLoader(name, spec.origin)
        return spec


def main(arguments: list[str]) -> None:
    """Read the corpus of the target, and fuzz it."""
    os.environ.setdefault("HOPFUSE_NUM_THREADS", "1")
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    import atheris

    name, *options = arguments
    sys.meta_path.insert(0, SourceFiles)
    with atheris.instrument_imports(include=["hopfuse", "fuzz.planted"]):
        from fuzz.targets import inputs_of, is_read, target_of

        target, folder = target_of(name), Path(tempfile.mkdtemp())
        for path in inputs_of(target):
            is_read(target, path.read_bytes(), folder)

    def read(data: bytes) -> None:
        is_read(target, data, folder)

    def change(data: bytes, most: int, seed: int) -> bytes:
        assert target.mutate is not None
        return target.mutate(bytes(data), most, random.Random(seed), atheris.Mutate)

    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + ROOM, held + ROOM))
    mutator = {} if target.mutate is None else {"custom_mutator": change}
    atheris.Setup([sys.argv[0], *options], read, **mutator)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
