"""People at a terminal, and the programs that stand in for them: their input and their output."""
