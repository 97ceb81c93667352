"""Attacks on a started server, and what its other clients see of them: ``python -m bench.hostile``.

A family of attacks is a module whose functions have the decorator ``attack``; ``FAMILIES`` of ``attacks.py`` names the
modules.
"""
