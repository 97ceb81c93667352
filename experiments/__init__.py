"""Retrieval quality: what each recipe, option and reader is worth on real questions. Speed is measured in bench/."""
