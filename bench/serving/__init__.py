"""``python -m bench.serving``: the server under load on loopback, compared with other servers and the library."""
