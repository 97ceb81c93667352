"""The bench: it proves an answer right, then times it beside a peer.

``python -m bench`` runs every case; see ``docs/performance.md`` for what one machine measured.
"""
