"""Shares in words: one way to write them on every page, figure and terminal."""


def in_percent(share: float, digits: int = 1) -> str:
    """A share with a space before its sign, without zeros at its end: "5 %", "8.3 %".

    Args:
        share: 0 to 1.
        digits: places after the point, at most.
    """
    return f"{round(100 * share, digits):g} %"
