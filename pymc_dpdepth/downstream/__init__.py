"""Bayesian inference from Releases alone: post-processing, free of privacy cost."""
