"""What studies have in common: records that grow line by line, tables, and real optimisers."""
