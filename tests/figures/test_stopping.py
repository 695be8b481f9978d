"""Panels of stopping rules: values, limits and first advice as numbers."""

import numpy as np

from workbench.figures.curves import Panel, stopping_panels


def test_a_panel_a_rule_with_its_limit_and_its_first_stop() -> None:
    labels = np.array([3, 4, 5])
    fig = stopping_panels(
        labels,
        [
            Panel("Uncertainty <b>", np.array([0.3, 0.2, 0.04]), 0.05, 5, share=True),
            Panel("Kappa", np.array([np.nan, 0.2, 0.5]), 0.99, None),
            Panel("Error", np.array([0.3, 0.2, 0.1]), None, None, share=True),
        ],
    )
    assert [t.y.tolist()[2] for t in fig.data] == [0.04, 0.5, 0.1]
    assert all(t.x.tolist() == [3, 4, 5] for t in fig.data)
    lines = [(s.y0, s.x0) for s in fig.layout.shapes]
    assert len(lines) == 3 and lines[0][0] == 0.05 and lines[1][1] == 5 and lines[2][0] == 0.99
    words = [a.text for a in fig.layout.annotations]
    assert "stop at 5" in words and "Uncertainty &lt;b&gt;" in words
    # a limit beyond the values is still in view
    assert (
        fig.layout.yaxis2.range[1] > 0.99 and fig.layout.yaxis.range[0] < 0 < 0.3 < fig.layout.yaxis.range[1]
    )
    assert fig.layout.xaxis3.title.text == "Labels" and fig.layout.yaxis.tickformat == ".3~%"


def test_nothing_to_draw_is_said() -> None:
    assert "No round" in stopping_panels(np.empty(0), []).layout.annotations[0].text
