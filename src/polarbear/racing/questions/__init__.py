"""The questions that a race can answer, one module each; ``question`` says what a question is."""
