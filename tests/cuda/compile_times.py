"""Print the CPU seconds that NVRTC takes for each kernel file, as a first use on a card does.

Usage: ``python tests/cuda/compile_times.py [architecture]``, 89 if none is given. It needs NVIDIA's wheel, but no GPU.
"""

from __future__ import annotations

import sys
import time

from nvrtc import SOURCES, find


def main(architecture: int) -> None:
    compiler = find("nvidia-cuda-nvrtc-cu12")
    if compiler is None:
        sys.exit("NVRTC is not installed: pip install nvidia-cuda-nvrtc-cu12")
    total = 0.0
    for source in SOURCES:
        begin = time.process_time()
        compiler.compile(source, architecture)
        taken = time.process_time() - begin
        total += taken
        print(f"{taken:6.2f}  {source.name}", flush=True)
    print(f"{total:6.2f}  all, for sm_{architecture} by NVRTC {compiler.version}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 89)
