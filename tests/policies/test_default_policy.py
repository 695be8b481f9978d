"""The policy that asks: the default looks for classes nobody has seen, and a share is left to chance."""

import numpy as np
import pytest

from tests.policies.helpers import belief, rng
from workbench.policies import query
from workbench.policies.default_policy import DEFAULT_POLICY, effective_policy, mix_uniform

CLASSES = ("good", "bad", "fraud")


def test_a_class_without_a_label_is_looked_for_where_the_model_knows_least() -> None:
    found = effective_policy("margin", CLASSES, np.array([0, 1, 1]), has_latent=True)
    assert found == ("variance", "looking for fraud: none seen yet")
    assert effective_policy("margin", CLASSES, np.array([0, 2, 1]), has_latent=True) == ("margin", "")


def test_a_chosen_policy_and_a_model_without_latents_are_left_alone() -> None:
    codes = np.array([0, 1])
    assert effective_policy("entropy", CLASSES, codes, has_latent=True).policy == "entropy"
    assert effective_policy("margin", CLASSES, codes, has_latent=False).policy == "margin"


def test_the_search_ends_when_the_pool_may_not_have_the_class() -> None:
    assert effective_policy("margin", CLASSES, np.zeros(129, int), has_latent=True).policy == "variance"
    assert effective_policy("margin", CLASSES, np.zeros(130, int), has_latent=True).policy == "margin"


def test_many_missing_classes_are_counted() -> None:
    names = tuple("abcdef")
    assert effective_policy("margin", names, np.array([0]), has_latent=True).reason == (
        "looking for b, c, d and 2 more: none seen yet"
    )


def test_a_share_is_drawn_uniformly_and_the_rest_stays() -> None:
    b = belief()
    plain = query("margin", b, 10, rng(), "top")
    assert mix_uniform(plain, b, 0.0, rng()) is plain
    counts = np.zeros(300)
    replaced = 0
    for seed in range(300):
        mixed = mix_uniform(plain, b, 0.3, rng(seed))
        assert len(set(mixed.indices.tolist())) == 10 and not np.isin(mixed.indices, b.labelled).any()
        if mixed.uniform is None:
            assert mixed is plain
            continue
        kept = ~mixed.uniform
        rest = plain.indices[~np.isin(plain.indices, mixed.indices[mixed.uniform])]
        assert np.array_equal(mixed.indices[kept], rest[: int(kept.sum())]), "the policy's best of the others"
        assert np.isnan(mixed.utilities[mixed.indices[mixed.uniform]]).all()
        counts[mixed.indices[mixed.uniform]] += 1
        replaced += int(mixed.uniform.sum())
    # an error estimated on them is that of the open pool: its favourites are drawn as often as the others
    others = np.setdiff1d(b.askable, plain.indices)
    assert counts[plain.indices].mean() == pytest.approx(counts[others].mean(), rel=0.4)
    assert replaced / 3000 == pytest.approx(0.3, abs=0.04)
    assert counts[b.labelled].sum() == 0 and counts.max() < 15
    everything = mix_uniform(plain, b, 1.0, rng())
    assert everything.uniform is not None and everything.uniform.all()


def test_there_is_one_default() -> None:
    from inspect import signature

    from workbench.cli import models, runs
    from workbench.documents.projects import ProjectSettings
    from workbench.sessions import RunSpec, Session, simulate

    for called in (simulate, RunSpec, Session.create, ProjectSettings, runs.run, models.score):
        assert signature(called).parameters["policy"].default == DEFAULT_POLICY  # type: ignore[arg-type]
