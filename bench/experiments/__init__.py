"""Which fusion serves multi-hop questions: chosen on one half of the questions, compared on the other.

``python -m bench.experiments`` answers every question of :mod:`.questions`, and writes the numbers and the page.
"""
