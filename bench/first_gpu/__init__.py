"""Every check and measurement for a GPU that has not been tried yet: ``python -m bench.first_gpu --out FILE``."""
