"""Measure the retrieval quality of recipes, options and readers on real questions; ``bench`` measures speed."""
