"""The History page: what happened, what was decided and by whom, labels out and in."""
