"""A race while it runs: in a terminal, as lines for programs, in a browser."""
