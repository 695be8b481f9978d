"""Machinery that no person sees: processes beside the server, jobs, what is sent to browsers, limits."""
