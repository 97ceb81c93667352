"""Benchmarks: check that an answer is correct, then time hopfuse and a peer in turns.

``python -m bench`` runs every case; ``docs/performance.md`` has recorded results. Imports the public API only, and
``reference`` for the checks.
"""
