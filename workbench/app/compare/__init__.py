"""The Compare and the Adversarial page: policies over many runs, attacks on a model."""
