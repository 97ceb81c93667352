"""A server whose encoder does what texts say: ``python -m bench.hostile.triggered CONFIG --port PORT --seconds S``."""

from __future__ import annotations

import argparse
from pathlib import Path

from hopfuse.serve import ServeConfig, run

from .encoders import Triggered


def main() -> None:
    """Serve until a signal."""
    parser = argparse.ArgumentParser(prog="python -m bench.hostile.triggered", description=__doc__)
    parser.add_argument("config", type=Path)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True, help="of a call, after which it counts as hanging")
    options = parser.parse_args()
    limits = {"encoder_seconds": options.seconds}
    config = ServeConfig.read(options.config.read_text(), {"port": options.port, "limits": limits})
    run(config, dict.fromkeys(config.indexes, Triggered(dim=32)))


if __name__ == "__main__":
    main()
