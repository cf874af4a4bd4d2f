"""People at a terminal, and the programs that stand in for them: what they say and what they are shown."""
