"""The desk: the component that shows one item at a time and answers keys itself, and the server's side of it.

`mount` puts it on a page, `mount_gallery` the gallery of review; `routes` are what they speak with.
The protocol is in docs/reference/desk.md.
"""

from workbench.app.desk.component import (
    mount,
    mount_gallery,
    mount_told,
    picture_address,
    told_pictures,
)
from workbench.app.desk.routes import routes

__all__ = [
    "mount",
    "mount_gallery",
    "mount_told",
    "picture_address",
    "routes",
    "told_pictures",
]
