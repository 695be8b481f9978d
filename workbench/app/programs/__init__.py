"""What programs speak with: an HTTP API beside the pages, its description, and the address that is told."""

from workbench.app.programs.routes import routes

__all__ = ["routes"]
