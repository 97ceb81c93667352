import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_folder():
    folder = Path(os.environ.get("HOPFUSE_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"the real data is not at {folder}; set HOPFUSE_DATA")
    return folder
