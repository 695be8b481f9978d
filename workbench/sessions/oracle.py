"""Oracle that answers in a person's place."""

from workbench.errors import InputError
from workbench.pools.pool import Pool


class ArrayOracle:
    """Answers with the pool's own truth.

    Args:
        pool: with truth.
    """

    def __init__(self, pool: Pool) -> None:
        if pool.truth is None:
            raise InputError(f"Pool {pool.name!r} has no known classes, so no oracle can answer.")
        self._pool = pool
        self._truth = pool.truth

    def __call__(self, item: int) -> str:
        """The name of the item's class.

        Raises:
            InputError: the source does not know it.
        """
        code = int(self._truth[item])
        if code < 0:
            raise InputError(f"The class of item {item} is not known; a person must label it.")
        return self._pool.classes[code]
