"""Print what the build needs, as pyproject.toml states it."""

import sys
import tomllib
from pathlib import Path

print(*tomllib.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["build-system"]["requires"])
