"""What Mino costs, measured against what it must at least cost and against other command-line clients.

`python -m bench` prints a table and writes JSON. The package needs nothing but the standard library; what it measures,
it installs into environments of its own.
"""
