"""Who comes in, to which project, and who else: log-in, tokens, sharing, the audit."""
