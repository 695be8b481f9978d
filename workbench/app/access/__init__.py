"""Access to the program and to a project: log-in, tokens, sharing, the audit."""
