"""All that a card which nobody has tried yet is asked for, part by part: ``python -m bench.first_gpu --out FILE``."""
