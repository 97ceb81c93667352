"""Compare fusion methods on multi-hop questions: options are chosen on one half of them, and compared on the other.

``python -m experiments.fusion`` runs every study of :mod:`.questions`, and writes the results and the page.
"""
