import numpy as np
import pytest

from workbench.errors import InputError
from workbench.metrics import cohen_kappa, krippendorff_alpha
from workbench.metrics.agreement import alpha_interval
from workbench.metrics.calibration import share_interval


def test_cohen_by_hand():
    # both yes 20, only the first 5, only the second 10, both no 15: 0.7 where chance gives 0.5
    first = [1] * 20 + [1] * 5 + [0] * 10 + [0] * 15
    second = [1] * 20 + [0] * 5 + [1] * 10 + [0] * 15
    found = cohen_kappa(first, second)
    assert (found.n_items, found.n_ratings) == (50, 100)
    assert found[:3] == pytest.approx((0.7, 0.5, 0.4))


def table(*people: str) -> np.ndarray:
    """Counts of classes by item, from what each person said of each; "." where they said nothing."""
    names = sorted({sign for said in people for sign in said} - {"."})
    return np.array(
        [[column.count(name) for name in names] for column in map("".join, zip(*people, strict=True))]
    )


def test_the_examples_that_krippendorff_printed():
    # Krippendorff 2011: two observers and two classes (A), five classes (B), four observers with gaps (C)
    assert krippendorff_alpha(table("0100000010", "1110010000")).kappa == pytest.approx(0.095, abs=5e-4)
    assert krippendorff_alpha(table("aabbdcccedda", "babbbccceddd")).kappa == pytest.approx(0.692, abs=5e-4)
    found = krippendorff_alpha(
        table("123321412...", "1233224125.3", ".3332342251.", "1233244125 1.".replace(" ", ""))
    )
    assert found.kappa == pytest.approx(0.743, abs=5e-4)
    assert (found.n_items, found.n_ratings) == (11, 40)


def test_alpha_by_hand():
    # pairs that agree: all, 1 of 3, all, 1 of 3; of 12 ratings 6 are of each class: 60 of 132 pairs alike
    found = krippendorff_alpha([[3, 0], [2, 1], [0, 3], [1, 2]])
    assert found[:3] == pytest.approx((2 / 3, 60 / 132, (2 / 3 - 60 / 132) / (1 - 60 / 132)))
    assert (found.n_items, found.n_ratings) == (4, 12)


def test_items_rated_by_some_count_and_those_rated_once_do_not():
    counts = [[3, 0], [2, 1], [0, 3], [1, 2]]
    assert krippendorff_alpha([*counts, [0, 1]]) == krippendorff_alpha(counts)
    assert krippendorff_alpha([*counts, [1, 1]]).kappa < krippendorff_alpha(counts).kappa


def test_kappa_is_undefined_where_chance_agrees_as_well():
    found = cohen_kappa([1, 1], [1, 1])
    assert found.observed == 1.0 and np.isnan(found.kappa)
    assert np.isnan(krippendorff_alpha([[2, 0], [2, 0]]).kappa)


@pytest.mark.parametrize(("n", "low"), [(2, -0.1), (5, 0.185), (20, 0.686)])
def test_the_interval_of_items_without_a_difference_is_no_point(n, low):
    same = np.array([[2, 0], [0, 2]] * n)[:n]
    found = alpha_interval(same)
    assert found.high == 1.0 and found.low == pytest.approx(low, abs=0.02)
    differ = alpha_interval(np.ones((n, 2), dtype=int))
    assert differ.low < krippendorff_alpha(np.ones((n, 2), dtype=int)).kappa + 1e-9 < differ.high - 0.1
    one = same.copy()
    one[0] = [1, 1]
    assert alpha_interval(one).low < found.low


def test_items_that_are_all_of_one_class_when_drawn_again_say_nothing_of_the_interval():
    # of four items one is of another class: a third of the draws leave it out, and have no alpha
    interval = alpha_interval([[2, 0], [2, 0], [2, 0], [0, 2]])
    assert np.isfinite([interval.low, interval.high]).all() and interval.low < interval.high == 1.0


def test_the_upper_end_is_that_of_the_share_of_items_with_two_alike():
    # two of ten items have two ratings alike; each class is named as often: chance gives 9 of 19
    interval = alpha_interval([[2, 0], [0, 2], *[[1, 1]] * 8])
    by_chance = 9 / 19
    assert interval.high == pytest.approx((share_interval(2, 10).high - by_chance) / (1.0 - by_chance))


def test_the_interval_covers_the_agreement_of_few_items():
    # two people, each right in 95 %: they agree in 0.905 of the items, where chance gives 0.5
    rng, held = np.random.default_rng(0), []
    for seed in range(200):
        truth = rng.integers(2, size=20)
        said = np.stack([np.where(rng.random(20) < 0.95, truth, 1 - truth) for _ in range(2)], axis=1)
        _, low, high, _ = alpha_interval(
            np.stack([(said == c).sum(axis=1) for c in (0, 1)], axis=1), seed=seed
        )
        held.append(low <= 0.81 <= high)
    assert np.mean(held) >= 0.93


@pytest.mark.parametrize(
    ("alike", "others", "apart", "low"), [(98, 1, 1, 0.24), (9, 0, 1, -0.19), (999, 0, 1, 0.0)]
)
def test_the_lower_end_is_one_that_a_table_can_have(alike, others, apart, low):
    """More items that differ also name the rare class more often: agreement by chance falls with them."""
    table = np.array([[2, 0]] * alike + [[0, 2]] * others + [[1, 1]] * apart)
    assert -1.0 / (2 * len(table) - 1) - 0.5 < alpha_interval(table).low <= low + 0.01


def test_refused():
    with pytest.raises(InputError, match="2 true classes but 1 predictions"):
        cohen_kappa([0, 1], [0])
    with pytest.raises(InputError, match="an item that two people labelled"):
        krippendorff_alpha([[1, 0], [0, 1]])
    with pytest.raises(InputError, match="table of counts"):
        krippendorff_alpha([[0.5, 1.5]])
