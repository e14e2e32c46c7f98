"""The race: which runs are made next, which algorithms are eliminated, and replays of runs."""
