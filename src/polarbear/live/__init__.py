"""Show a race while it runs: in a terminal, as JSON lines for programs, in a browser."""
