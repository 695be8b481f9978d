"""Data sets that are ready: the catalogue, what comes with the packages, known sets, generators."""
