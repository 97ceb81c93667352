"""``python -m bench.serving``: the server under load on loopback, beside other servers and the library itself."""
