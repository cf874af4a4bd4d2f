"""The conversations of a home; no network and no terminal."""
