"""Workers over HTTP: the protocol, leases, tokens, audit by repetition, and the worker itself."""
