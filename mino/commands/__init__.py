"""One plain function a command; the words of the command line come from `mino.cli`."""
