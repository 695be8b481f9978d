"""Paired measurements of speed, memory and quality; each prints the lines the docs quote."""
