"""Lenses: one file an analysis. Each takes a model or a trace and returns a frozen result."""
