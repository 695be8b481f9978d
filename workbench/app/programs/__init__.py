"""What programs speak with: an HTTP API beside the pages, and its description."""

BASE = "/api/v1"
