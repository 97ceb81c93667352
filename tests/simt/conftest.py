"""The emulator's package lies beside its sources; nothing that is shipped imports it."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "kernels" / "simt"))
