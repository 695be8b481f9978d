"""The errors a person can do something about."""


class InputError(ValueError):
    """Something given by a person cannot be used; the message says what and what to do.

    The command line prints the message alone and exits with 2; a page shows it in place.
    """


class StorageError(InputError):
    """The place where things are kept cannot be used now: full, read-only, locked. What was saved is kept."""


class OutgrownError(StorageError):
    """The pool of a project has grown since it was opened here; opened again, the project goes on."""


class Cancelled(Exception):
    """A job was told to stop; whatever it had finished is kept."""
