"""The environment of a process on a machine with a GPU, all of it the emulator's: its driver and its NVRTC.

No program that runs in such a process knows; it differs from one on a real machine in environment variables alone.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hopfuse_simt import build
from hopfuse_simt.driver import SimtDriver

FOLDER = Path(__file__).parent
#: Kernels of bench.first_gpu.
PROBES = FOLDER.parents[1] / "bench" / "first_gpu" / "probes.cu"
#: Bytes of a device. Small: a program that fills the memory touches all of it.
MEMORY = 192 * 2**20


def environment(folder: Path) -> dict[str, str]:
    """Return this process's environment, changed so; files, among them the cache of kernels, are in ``folder``."""
    driver, images = SimtDriver(), folder / "images"
    images.mkdir(parents=True, exist_ok=True)
    for name, image in (driver.images() | driver.images([PROBES])).items():
        (images / name).write_bytes(image)
    path = os.pathsep.join([str(FOLDER / "bin"), os.environ.get("PATH", "")])
    return os.environ | {
        "PATH": path,
        "HOPFUSE_LIBCUDA": str(driver.path),
        "HOPFUSE_NVRTC": str(nvrtc()),
        "HOPFUSE_SIMT_IMAGES": str(images),
        "HOPFUSE_SIMT_MEMORY": str(MEMORY),
        "HOPFUSE_CUDA_CACHE": str(folder / "cache"),
    }


def nvrtc() -> Path:
    """Return the stand-in for NVRTC, compiled once."""
    source = FOLDER / "nvrtc.cpp"
    folder = build.cache_folder() / f"nvrtc-{build.digest([source])}"
    with build.made_once(folder) as is_mine:
        if is_mine:
            with tempfile.TemporaryDirectory(dir=build.cache_folder()) as scratch:
                made = Path(scratch) / "nvrtc"
                made.mkdir()
                command = [build.compiler()[0], *build.COMMON, "-shared", source, "-o", made / "libnvrtc.so"]
                build.run(command, f"{source} does not compile")
                os.replace(made, folder)
    return folder / "libnvrtc.so"
