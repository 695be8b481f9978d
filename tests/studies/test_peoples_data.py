"""Data as people bring it, made by a seed: figures that the defaults must reach."""

import csv
import io
import math
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter

from workbench.pools import load_pool
from workbench.pools.building import number_pool
from workbench.pools.pool import Pool
from workbench.sessions.drawing import diverse_items
from workbench.sessions.simulate import simulate

AT_ONCE = [(1, 10), pytest.param((5, 1), marks=pytest.mark.slow)]
"""Seeds, and questions between two fits."""
SIZES = ((160, 120), (120, 160), (118, 88), (240, 180), (200, 200), (270, 90))
PAPER = ((225, 222, 210), (200, 214, 205), (235, 230, 235), (180, 190, 200))
INK = ((90, 70, 40), (60, 90, 60), (110, 60, 70), (50, 70, 100))


def scene(shape: str, rng: np.random.Generator) -> bytes:
    """A drawn organism somewhere on speckled paper of any size, as JPEG."""
    width, height = SIZES[rng.integers(len(SIZES))]
    paper, ink = np.array(PAPER[rng.integers(4)]), INK[rng.integers(4)]
    light = tuple(min(255, value + 70) for value in ink)
    speckles = rng.integers(-40, 40, (height, width, 1)) * (rng.random((height, width, 1)) < 1 / 60)
    image = Image.fromarray((paper + speckles).clip(0, 255).astype(np.uint8))
    draw, size, turn = ImageDraw.Draw(image), min(width, height), rng.uniform(0, 6)
    x, y = width * rng.uniform(0.35, 0.65), height * rng.uniform(0.4, 0.6)

    def at(radius: float, angle: float) -> tuple[float, float]:
        return x + radius * math.cos(angle), y + radius * math.sin(angle)

    if shape == "disc":
        r = size * rng.uniform(0.22, 0.36)
        draw.ellipse([x - r, y - r, x + r, y + r], outline=ink, width=max(2, int(r / 12)), fill=light)
        for k in range(12):
            draw.line([(x, y), at(r, k * math.pi / 6)], fill=ink)
    elif shape == "rod":
        r = size * rng.uniform(0.3, 0.42)
        draw.line([at(r, turn), at(-r, turn)], fill=ink, width=int(size * rng.uniform(0.08, 0.14)))
    elif shape == "spiral":
        path = [at(size * 0.4 * i / 200, i * 6 * math.pi / 200 + turn) for i in range(200)]
        draw.line(path, fill=ink, width=max(2, size // 40), joint="curve")
    else:
        n = int(rng.integers(5, 8))
        corners = [
            at(size * (0.4 if i % 2 else 0.16) * rng.uniform(0.9, 1.1), turn + i * math.pi / n)
            for i in range(2 * n)
        ]
        draw.polygon(corners, fill=light, outline=ink)
    file = io.BytesIO()
    image.filter(ImageFilter.GaussianBlur(rng.uniform(0, 1.5))).save(file, "JPEG", quality=85)
    return file.getvalue()


def photos(seed: int, folder: Path) -> Pool:
    """200 photos of mixed sizes in four folders, the rarest with a tenth of them."""
    rng = np.random.default_rng(seed)
    path = folder / f"scenes{seed}.zip"
    with zipfile.ZipFile(path, "w") as file:
        for i in range(200):
            shape = str(rng.choice(["disc", "rod", "spiral", "star"], p=[0.4, 0.3, 0.2, 0.1]))
            file.writestr(f"{shape}/{i}.jpg", scene(shape, rng))
    return load_pool(str(path))


TOPICS = {
    "Pay": (
        "my salary has not moved in {n} years",
        "the bonus was cut and nobody in {d} explained it",
        "I earn less than new hires in {d}",
        "overtime of the {d} shift is still not paid",
        "pay bands are a secret here",
        "a raise of {n} percent does not cover inflation",
        "expenses from {m} were never refunded",
    ),
    "Workload": (
        "I have {n} projects at once and cannot finish any",
        "we are permanently understaffed in {d}",
        "weekend work has become normal since {m}",
        "two people left and their tasks came to me",
        "deadlines are set without asking who does the work",
        "the on-call rota comes every {n} days",
        "I skip lunch most days to keep up",
    ),
    "Manager": (
        "my team lead never answers questions",
        "decisions are made behind closed doors by the head of {d}",
        "my boss only speaks when something goes wrong",
        "feedback talks were cancelled {n} times since {m}",
        "favourites get the good assignments",
        "she shouts at people in meetings",
        "leadership changes direction every {n} weeks",
    ),
    "Growth": (
        "there is no training budget for {d} this year",
        "promotions go to people from outside",
        "there is no career path beyond my present role",
        "the mentoring programme of {m} was great",
        "my degree is not used at all in {d}",
        "internal job ads are taken down before we can apply",
        "the learning platform has only outdated videos",
    ),
    "Tools": (
        "my laptop takes {n} minutes to start",
        "the VPN drops every {n} minutes",
        "the office is freezing in {m}",
        "we still use spreadsheets where a proper system is needed",
        "printers on floor {n} never work",
        "open-plan noise makes calls impossible",
        "the canteen closes at {n}",
    ),
}
DEPARTMENTS = ("logistics", "finance", "sales", "the lab", "IT", "procurement", "marketing", "legal")
MONTHS = ("January", "March", "April", "June", "September", "November")
BEFORE = ("", "", "Honestly, ", "To be frank, ", "As I said last year: ", "It is a pity that ")
AFTER = ("", "", " Please do something.", " This is why people leave.", " Nobody seems to care.", " :(")


def comments(seed: int, folder: Path) -> Pool:
    """1,000 comments of employees with department and date, which say nothing of the topic."""
    rng = np.random.default_rng(seed)

    def any_of(words: tuple[str, ...]) -> str:
        return words[rng.integers(len(words))]

    of = {
        "n": lambda: str(rng.integers(2, 13)),
        "d": lambda: any_of(DEPARTMENTS),
        "m": lambda: any_of(MONTHS),
    }

    def about(topic: str) -> str:
        return re.sub(r"{(.)}", lambda match: of[match[1]](), any_of(TOPICS[topic]))

    path = folder / f"comments{seed}.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["comment_id", "department", "date", "comment", "topic"])
        for i in range(1000):
            topic = str(rng.choice(list(TOPICS), p=[0.28, 0.26, 0.2, 0.14, 0.12]))
            words = any_of(BEFORE) + about(topic)
            words += f", and {about(topic)}" if rng.random() < 0.35 else ""
            words += f"; also {about(any_of(tuple(TOPICS)))}" if rng.random() < 0.08 else ""
            date = f"2026-0{rng.integers(1, 10)}-{rng.integers(10, 29)}"
            rows.writerow([f"HR-{i:05}", any_of(DEPARTMENTS), date, f"{words}.{any_of(AFTER)}", topic])
    return load_pool(str(path), target="topic")


def customers(seed: int) -> Pool:
    """2,000 customers, 3 % of whom leave, by seven columns of 22."""
    rng, n = np.random.default_rng(seed), 2000
    telling = [
        rng.poisson(0.25, n) * 1.3,
        rng.poisson(0.5, n) * 0.9,
        rng.normal(0, 0.6, n),
        (rng.random(n) < 0.55) * 1.2,
        rng.integers(0, 11, n) * -0.25,
        rng.poisson(1.2, n) * 0.35,
        rng.integers(1, 75, n) * -0.01,
    ]
    score = sum(telling) + rng.normal(0, 0.7, n)
    X = np.column_stack([*telling, rng.normal(size=(n, 15))])
    names = tuple(f"column_{d}" for d in range(X.shape[1]))
    leaves = (score >= np.quantile(score, 0.97)).astype(np.int64)
    return number_pool("customers", X, leaves, ("stays", "leaves"), names).split(seed, 0.1)


def n_rare_among(pool: Pool, questions: int, seed: int, batch: int) -> int:
    """Items of the rare class among the first questions, from those asked before two classes are known on."""
    truth = np.asarray(pool.truth)
    first = diverse_items(pool, pool.trainable, 8, seed, questions)
    n = int(np.flatnonzero(truth[first] != truth[first[0]])[0]) + 1
    start, budget = first[:n].tolist(), questions - n
    run = simulate(pool, policy="margin", initial=start, budget=budget, batch=batch, seed=seed)
    asked = np.concatenate([first[:n], *(at.queried for at in run)])
    return int((truth[asked] == 1).sum())


def error_of_new_items(pool: Pool, labels: int, seed: int) -> float:
    """Share of wrong predictions of held-out items at a number of labels, asked by margin."""
    error = math.nan
    for at in simulate(pool, policy="margin", budget=labels - len(pool.classes), seed=seed):
        error = at.error if at.n_labelled <= labels else error
    return error


def mean_error(make: Callable[[int, Path], Pool], labels: int, folder: Path) -> float:
    """Mean over five seeds, a fit after each question; printed."""
    errors = [error_of_new_items(make(seed, folder), labels, seed) for seed in range(5)]
    print(f"{make.__name__}: error at {labels} labels {np.round(errors, 4)}, mean {np.mean(errors):.4f}")
    return float(np.mean(errors))


@pytest.mark.slow  # alone: the default model on photos as people bring them
def test_photos_of_mixed_sizes_are_learnt_from_60_labels(tmp_path: Path) -> None:
    assert mean_error(photos, 60, tmp_path) <= 0.05


@pytest.mark.slow  # alone: the default model on comments beside columns that say nothing
def test_comments_are_learnt_from_90_labels_whatever_stands_beside_them(tmp_path: Path) -> None:
    assert mean_error(comments, 90, tmp_path) <= 0.05


@pytest.mark.slow  # alone: the default finds a rare class in people's data
@pytest.mark.parametrize("often", AT_ONCE)
def test_rare_customers_are_among_the_first_100_questions(often: tuple[int, int]) -> None:
    seeds, batch = often
    found = [n_rare_among(customers(seed), 100, seed, batch) for seed in range(seeds)]
    print(f"customers: {found} of the rare class among the first 100 questions")
    assert np.median(found) >= 6
