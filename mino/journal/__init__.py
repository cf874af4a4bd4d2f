"""Disk: the session file, its strict loader, its lock, and its recovery. It knows no network and no terminal."""
