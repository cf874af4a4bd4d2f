"""Disk: the session file, its strict loader, its lock, and its recovery. Knows no network and no terminal."""
