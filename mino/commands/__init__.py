"""One plain function for each command; `mino.cli` reads the command line."""
