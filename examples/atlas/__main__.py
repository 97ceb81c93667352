"""Run the example from the checkout: ``python examples/atlas``, or ``python -m examples.atlas``."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[2])

from examples.atlas.run import main  # noqa: E402 - found from the root of the checkout

main()
