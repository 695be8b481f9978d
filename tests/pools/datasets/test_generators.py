import itertools

import numpy as np
import pytest
from scipy.stats import chisquare

from tests.pools.helpers import needs
from workbench.errors import InputError
from workbench.pools import load_pool
from workbench.pools.datasets import generators
from workbench.pools.datasets.generators import POKER_HANDS, deal_poker, name_hands

# how many of the 2,598,960 five-card hands bear each name
POKER_COUNTS = (1_302_540, 1_098_240, 123_552, 54_912, 10_200, 5_108, 3_744, 624, 36, 4)


def test_every_hand_there_is_gets_its_name_as_often_as_combinatorics_say():
    cards = np.fromiter(
        itertools.chain.from_iterable(itertools.combinations(range(52), 5)),
        dtype=np.int8,
        count=5 * 2_598_960,
    ).reshape(-1, 5)
    codes = name_hands(cards // 13 + 1, cards % 13 + 1)
    assert tuple(np.bincount(codes, minlength=10)) == POKER_COUNTS


@pytest.mark.parametrize(
    ("hand", "name"),
    [
        ("1.1 2.5 3.9 4.12 1.7", "nothing"),
        ("1.1 2.1 3.9 4.12 1.7", "one pair"),
        ("1.1 2.1 3.9 4.9 1.7", "two pairs"),
        ("1.1 2.1 3.1 4.9 1.7", "three of a kind"),
        ("1.5 2.4 3.3 4.2 1.1", "straight"),
        ("1.13 2.10 3.1 4.12 1.11", "straight"),
        ("1.12 2.13 3.1 4.2 1.3", "nothing"),
        ("2.1 2.5 2.9 2.12 2.7", "flush"),
        ("1.1 2.1 3.9 4.9 1.9", "full house"),
        ("1.1 2.1 3.1 4.1 1.9", "four of a kind"),
        ("3.9 3.8 3.7 3.6 3.5", "straight flush"),
        ("3.1 3.13 3.12 3.11 3.10", "royal flush"),
    ],
)
def test_hands_by_hand(hand, name):
    cards = np.array([[int(part) for part in card.split(".")] for card in hand.split()])
    for order in itertools.permutations(range(5)):
        shuffled = cards[list(order)]
        assert POKER_HANDS[name_hands(shuffled[None, :, 0], shuffled[None, :, 1])[0]] == name


def test_dealing_is_fair_and_never_twice_the_same_card():
    hands = deal_poker(200_000, 0).astype(int)
    cards = (hands[:, 0::2] - 1) * 13 + hands[:, 1::2] - 1
    assert cards.min() == 0 and cards.max() == 51
    assert (np.diff(np.sort(cards, axis=1), axis=1) > 0).all()
    for place in range(5):
        assert chisquare(np.bincount(cards[:, place], minlength=52)).pvalue > 1e-4
    codes = name_hands(hands[:, 0::2], hands[:, 1::2])
    expected = np.array(POKER_COUNTS) / sum(POKER_COUNTS) * len(codes)
    # the rarest hands together, so that each count is large enough for the test
    seen = np.append(np.bincount(codes, minlength=10)[:7], np.count_nonzero(codes >= 7))
    assert chisquare(seen, np.append(expected[:7], expected[7:].sum())).pvalue > 1e-4


def test_a_longer_deal_begins_with_a_shorter_one():
    long = deal_poker(100_050, 7)
    np.testing.assert_array_equal(long[:300], deal_poker(300, 7))
    assert not np.array_equal(long[:300], deal_poker(300, 8))
    assert not np.array_equal(long[:50], long[100_000:])


def test_the_poker_pool_holds_the_papers_number_of_hands():
    pool = load_pool("poker")
    assert len(pool) == 1_025_010 and pool.n_features == 10 and pool.features.dtype == np.float32
    assert len(np.unique(pool.truth)) == 10
    share = np.bincount(pool.truth) / len(pool)
    np.testing.assert_allclose(share[:2], np.array(POKER_COUNTS[:2]) / 2_598_960, atol=0.002)
    row = pool.items.show(0).row
    np.testing.assert_array_equal(list(row.values()), pool.features[0])
    assert load_pool("poker", n_items=500).fingerprints[3] == pool.fingerprints[3]
    with pytest.raises(InputError, match="number of items"):
        load_pool("poker", n_items=5)


def test_the_rule_agrees_with_the_published_hands():
    needs("large/poker_25k.tsv.gz")
    pool = load_pool("large:poker_25k")
    hands = pool.features.astype(int)
    assert len(pool) == 25_010
    np.testing.assert_array_equal(name_hands(hands[:, 0::2], hands[:, 1::2]), pool.truth)


def test_overlapping_classes_know_their_probabilities():
    pool = load_pool("overlapping", n_items=120_000, n_classes=5, n_features=3, overlap=0.7, seed=4)
    p = generators._mixture_probabilities(pool.features, generators.overlapping_centres(5, 3, 0.7, 4), 1.0)
    assert p.shape == (120_000, 5)
    error = np.mean(p.argmax(axis=1) != pool.truth)
    assert abs(error - np.mean(1 - p.max(axis=1))) < 0.005
    assert 0.05 < error < 0.5
    nll = -np.log(p[np.arange(len(pool)), pool.truth]).mean()
    assert abs(nll + (p * np.log(p)).sum(axis=1).mean()) < 0.01
    short = load_pool("overlapping", n_items=100, n_classes=5, n_features=3, overlap=0.7, seed=4)
    np.testing.assert_array_equal(short.features, pool.features[:100])
    tiny = load_pool("overlapping", n_items=40, n_classes=30, n_features=2)
    assert len(np.unique(tiny.truth)) == 30 and tiny.plane
    with pytest.raises(InputError, match="overlap"):
        load_pool("overlapping", overlap=0)
