"""A server whose encoder does what texts say: ``python -m bench.hostile.triggered CONFIG --port PORT``."""

from __future__ import annotations

import argparse
from pathlib import Path

from hopfuse.serve import ServeConfig, run

from .encoders import Triggered

#: Seconds of a call, after which it counts as one that hangs.
SECONDS = 0.3


def main() -> None:
    """Serve until a signal."""
    parser = argparse.ArgumentParser(prog="python -m bench.hostile.triggered", description=__doc__)
    parser.add_argument("config", type=Path)
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    config = ServeConfig.read(
        options.config.read_text(), {"port": options.port, "limits": {"encoder_seconds": SECONDS}}
    )
    run(config, dict.fromkeys(config.indexes, Triggered(dim=32)))


if __name__ == "__main__":
    main()
