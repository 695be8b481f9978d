"""Who comes in, to which project, and who else: log-in, guests, tokens, sharing, the audit."""
