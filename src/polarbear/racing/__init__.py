"""The race: which runs are made next and which algorithms are eliminated."""
