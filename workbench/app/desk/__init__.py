"""The desk: the component that shows one item at a time and answers keys itself, and the server's side of it.

`mount` puts it on a page; `routes` are what it speaks with. The protocol is in docs/desk.md.
"""

from workbench.app.desk.component import mount
from workbench.app.desk.routes import routes

__all__ = ["mount", "routes"]
