"""Compare fusions on multi-hop questions: chosen on one half of the questions, compared on the other.

``python -m experiments.fusion`` answers every question of :mod:`.questions`, and writes the numbers and the page.
"""
