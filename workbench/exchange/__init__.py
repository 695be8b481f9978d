"""Every format of labels in and out, run bundles, saved models."""
