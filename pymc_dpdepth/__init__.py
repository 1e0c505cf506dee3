"""Differentially private multivariate medians as PyMC models, with exact draws."""
