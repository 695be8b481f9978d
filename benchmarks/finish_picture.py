"""The picture of what a finish costs: a bar a side and pool, as a share of labelling everything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

COLOURS = {"ours": "#2a9d5c", "random": "#8a94a0", "extra-trees": "#c9a227"}
NAMES = {"ours": "ours", "random": "random labels", "extra-trees": "extra trees, margin"}
_LEFT, _WIDE, _BAR, _GAP = 130, 480, 12, 20


def cost_svg(shares: Mapping[str, Mapping[str, float]], sides: Sequence[str]) -> str:
    """Bars of human answers as a share of the pool.

    Args:
        shares: pool -> side -> share, from 0 to 1.
        sides: in their order.

    Returns:
        A whole SVG, which reads on light and dark paper.
    """
    rows, y = [], 34
    for pool, of_side in shares.items():
        middle = y + len(sides) * _BAR / 2 + 4
        rows.append(f'<text x="{_LEFT - 12}" y="{middle:.0f}" text-anchor="end">{escape(pool)}</text>')
        for side in sides:
            wide = max(1.0, _WIDE * of_side[side])
            end, foot, said = f"{_LEFT + wide + 5:.1f}", y + _BAR - 3, f"{of_side[side]:.0%}"
            rows.append(
                f'<rect x="{_LEFT}" y="{y}" width="{wide:.1f}" height="{_BAR - 2}" fill="{COLOURS[side]}"/>'
                f'<text x="{end}" y="{foot}" font-size="10">{said}</text>'
            )
            y += _BAR
        y += _GAP
    keys, x = [], _LEFT
    for side in sides:
        keys.append(f'<rect x="{x}" y="10" width="10" height="10" fill="{COLOURS[side]}"/>')
        keys.append(f'<text x="{x + 15}" y="19">{NAMES[side]}</text>')
        x += 150
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDE + 50} {y}" role="img" '
        'font-family="system-ui, sans-serif" font-size="12" fill="#737d88" '
        'aria-label="Human answers until a certified set is delivered, as a share of labelling everything">'
        f"{''.join(keys)}{''.join(rows)}</svg>\n"
    )
