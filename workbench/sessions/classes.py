"""The classes of a project as people change them."""

from collections.abc import Sequence

from workbench.sessions.part import Names
from workbench.store import Event


class Classes(Names):
    """Names of the classes at one moment, places are the codes; and changing them: `Session.classes`."""

    def add(self, name: str) -> Event:
        """Add a class.

        Raises:
            InputError: an empty name, or one that exists.
        """
        return self._event("class-add", label=name)

    def rename(self, name: str, new: str) -> Event:
        """Give a class another name; its labels follow.

        Raises:
            InputError: no class is called so (any more), the new name is empty, or exists.
        """
        return self._event("class-rename", label=name, text=new)

    def merge(self, name: str, into: str) -> Event:
        """Count one class's labels as another's; the first disappears."""
        return self._event("class-merge", label=name, text=into)

    def remove(self, name: str) -> Event:
        """Take away a class that nobody needs; it is back with the first label that names it.

        Raises:
            InputError: there is none, labels name it, the pool knows items of it, or one class would be left.
        """
        return self._event("class-remove", label=name)

    def describe(
        self,
        name: str,
        *,
        guidance: str | None = None,
        shortcut: str | None = None,
        colour: str | None = None,
    ) -> Event:
        """Say what belongs to a class, and how it is shown.

        Args:
            name: of the class.
            guidance: one line; "" takes it away, None leaves it.
            shortcut: the key that gives it, a letter or digit.
            colour: "#rrggbb".

        Raises:
            InputError: no such class, a line that is too long, or a key or colour that is none or taken.
        """
        about = {"guidance": guidance, "shortcut": shortcut, "colour": colour}
        return self._event(
            "class-describe", label=name, value={key: v for key, v in about.items() if v is not None}
        )

    def order(self, names: Sequence[str]) -> Event:
        """Show the classes in this order; those not named follow. Codes and models stay as they are.

        Raises:
            InputError: a class that there is not.
        """
        return self._event("class-order", value=tuple(names))
