"""Conversations as other programs write them, in and out: text in, turns out; no disk, no network."""
