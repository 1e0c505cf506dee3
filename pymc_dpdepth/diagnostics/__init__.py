"""Looks at a model or its draws that stay with the curator: nothing here goes into a Release or certifies privacy."""
