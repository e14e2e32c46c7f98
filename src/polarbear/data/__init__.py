"""What happened: runs, the times one asks about, and who was ahead of whom."""
