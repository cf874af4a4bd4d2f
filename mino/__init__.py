"""Mino: ask language models from a shell, and keep the conversation in one crash-safe file."""

__version__ = "0.3.0"
