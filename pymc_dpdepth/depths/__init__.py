"""Depth functions."""
