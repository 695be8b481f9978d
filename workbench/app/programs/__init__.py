"""HTTP API for programs, beside the pages, and its description."""

BASE = "/api/v1"
