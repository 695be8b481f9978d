"""What programs speak with: an HTTP API beside the pages, its description, and the address that is told."""
