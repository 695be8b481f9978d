"""People who label: their consensus, what a model learns from it, and each one's figures and pace."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from statistics import median
from typing import NamedTuple

import numpy as np

from workbench.arrays import Floats, Ints
from workbench.metrics import Interval, share_interval
from workbench.metrics.agreement import (
    ACCURACY,
    ENOUGH,
    Agreement,
    Consensus,
    alpha_interval,
    consensus,
    everybody,
    krippendorff_alpha,
    without_person,
)
from workbench.store import Ask, Event, ProjectState, Vote
from workbench.store.events import ANSWERS, SOURCE
from workbench.store.fold_items import IMPORTED, person_of, votes_since

LEARNT_FROM = 2 / 3
"""Certainty of a consensus from which on a model learns from it."""
DISAGREEMENT_FROM = 0.8  # of the others' consensus, for an item to talk about
MOST_DISAGREEMENTS, MOST_CONFUSIONS = 10, 3
_DRIFT_FROM, _DRIFT_P = 20, 0.05
_DRAWN = ("evaluation", "uniform")
_LABELLED = ("overlap", "second", "check")  # questions about items that have a label


class ItemConsensus(NamedTuple):
    """The consensus of the items that two people or more labelled.

    Attributes:
        items: [n] places in the pool.
        people: names, by the numbers of `found`.
        ratings: [R, 3] (place in `items`, person, class code).
        found: the consensus.
    """

    items: tuple[int, ...]
    people: tuple[str, ...]
    ratings: Ints
    found: Consensus

    @property
    def decided(self) -> dict[int, tuple[int, float]]:
        """Item -> (class code, certainty)."""
        estimate = self.found
        rows = zip(self.items, estimate.codes.tolist(), estimate.certainties.tolist(), strict=True)
        return {item: (code, certainty) for item, code, certainty in rows}


class Disagreement(NamedTuple):
    """An item to talk about: the others are sure of another class.

    Attributes:
        item: its place.
        said: what the person said.
        others: what the others mean.
        certainty: how sure that is.
    """

    item: int
    said: str
    others: str
    certainty: float


class ConfusedClasses(NamedTuple):
    """Two classes that are taken for each other.

    Attributes:
        true: what people mean together.
        said: what was said instead.
        people: how many answers said so.
        model: how many first guesses of the model, of before anybody answered, did.
    """

    true: str
    said: str
    people: int
    model: int


@dataclass(frozen=True)
class PersonReport:
    """Figures of one person.

    Attributes:
        name: of the person.
        n_labels: items they labelled by themselves.
        n_shared: of these, labelled by somebody else as well.
        agreement: share of the shared ones on which they say what the others mean; NaN without any.
        low, high: 95 % interval of it (Wilson).
        accuracy: the model's: the chance that an answer of theirs is right.
        confusions: (the others' class, theirs, how often), most frequent first.
        seconds: median time of a label; NaN where none was taken.
        drift: agreement in the first and in the second half, where these differ by more than chance among
            all whose halves are compared.
        disagreements: items to talk about, the surest first.
    """

    name: str
    n_labels: int
    n_shared: int
    agreement: float
    low: float
    high: float
    accuracy: float
    confusions: tuple[tuple[str, str, int], ...]
    seconds: float
    drift: tuple[float, float] | None
    disagreements: tuple[Disagreement, ...]


@dataclass(frozen=True)
class PeopleReport:
    """Figures of the people of a project, together and each.

    Attributes:
        people: one each, those with most labels first.
        alpha: Krippendorff's alpha; None where no item has two labels.
        interval: its 95 % interval; None likewise.
        n_drawn: of the items it is of, those drawn at random; the others were picked.
        n_consensus: items that several labelled and nobody decided.
        n_other: of these, with another class than the majority's, or one where votes tie.
        n_open: of these, whose consensus is too unsure to learn from.
        weight: of the model's guesses in the consensus, from 0 to 1.
        confusions: classes that are taken for each other, most frequent first.
        n_answers, n_guesses: answers of people and guesses of the model that `confusions` is of.
    """

    people: tuple[PersonReport, ...]
    alpha: Agreement | None = None
    interval: Interval | None = None
    n_drawn: int = 0
    n_consensus: int = 0
    n_other: int = 0
    n_open: int = 0
    weight: float = 0.0
    confusions: tuple[ConfusedClasses, ...] = ()
    n_answers: int = 0
    n_guesses: int = 0

    @property
    def words(self) -> str:
        """All of it in a sentence."""
        return _words(self)


def item_consensus(state: ProjectState) -> ItemConsensus | None:
    """The consensus of the items that several labelled; None where there is none.

    Labels that people gave by themselves count, and what the model said before anybody answered.

    Args:
        state: of the project.
    """
    codes = {key: code for code, key in enumerate(state.keys)}
    if len(codes) < 2:
        return None
    rated: dict[int, dict[str, int]] = {}
    for item, votes in state.votes.items():
        if len(votes) > 1 and len(ratings := own_codes(votes, state, codes)) > 1:
            rated[item] = ratings
    if not rated:
        return None
    guesses = first_guesses(state, rated, codes)
    key = tuple((item, tuple(ratings.items())) for item, ratings in rated.items())
    return _consensus(key, tuple(guesses.get(item, ()) for item in rated), len(codes))


def own_votes(votes: Mapping[str, Vote], state: ProjectState) -> dict[str, Vote]:
    """Person -> their vote, of those who said something without a label in sight.

    Whom a file names and who does something here by that name is one person; others of a file are called as
    the rater is.
    """
    own = {}
    for vote in votes.values():
        if vote.by_themselves:
            person = person_of(vote.annotator)
            own[person if person in state.newest else vote.annotator] = vote
    return own


def own_codes(votes: Mapping[str, Vote], state: ProjectState, codes: Mapping[str, int]) -> dict[str, int]:
    """Person -> class code of what each said without a label in sight."""
    keys = {person: state.resolve(vote.by_themselves) for person, vote in own_votes(votes, state).items()}
    return {person: codes[key] for person, key in keys.items() if key in codes}


def n_drawn(state: ProjectState, items: Iterable[int]) -> int:
    """Number of items whose first question was drawn at random: they stand for all, as the others do not."""
    item_set = set(items)
    first: dict[int, Ask] = {}
    for ask in state.asks.values():
        if ask.item in item_set:
            first.setdefault(ask.item, ask)
    return sum(ask.role in _DRAWN or ask.details.get("policy") == "random" for ask in first.values())


def picked_words(drawn: int, n: int) -> str:
    """Clause on how items were chosen that an interval is of; "" where all were drawn at random."""
    return "" if drawn == n else f" ({drawn:,} drawn at random, {n - drawn:,} picked)"


def first_guesses(
    state: ProjectState, items: Iterable[int], codes: Mapping[str, int]
) -> dict[int, tuple[tuple[int, float], ...]]:
    """Item -> (class code, probability) of the likeliest classes before anybody had labelled it.

    An item that was labelled before its first question (by a file, in bulk) has none: the model learnt it.
    """
    item_set, guesses = set(items), {}
    for ask in state.asks.values():
        if ask.item not in item_set or ask.item in guesses or not (guess := ask.guess):
            continue
        votes = state.votes.get(ask.item, {})
        if ask.role not in _LABELLED and all(ask.event < vote.event for vote in votes.values()):
            pairs = [(codes.get(state.resolve(str(key)), -1), float(p)) for key, p in guess]
            guesses[ask.item] = tuple((code, p) for code, p in pairs if code >= 0)
    return guesses


@lru_cache(maxsize=16)
def _consensus(
    rated: tuple[tuple[int, tuple[tuple[str, int], ...]], ...],
    guesses: tuple[tuple[tuple[int, float], ...], ...],
    n_classes: int,
) -> ItemConsensus:
    people = list(dict.fromkeys(person for _, votes in rated for person, _ in votes))
    number = {person: j for j, person in enumerate(people)}
    ratings = np.array([(i, number[p], v) for i, (_, votes) in enumerate(rated) for p, v in votes])
    probabilities = np.stack([_spread(pairs, n_classes) for pairs in guesses])
    model = probabilities if np.isfinite(probabilities).any() else None
    estimate = consensus(ratings[:, 0], ratings[:, 1], ratings[:, 2], n_classes, model)
    return ItemConsensus(tuple(item for item, _ in rated), tuple(people), ratings, estimate)


def _spread(pairs: Sequence[tuple[int, float]], n_classes: int) -> Floats:
    """[C] the likeliest classes with their probabilities, what is left shared by the others."""
    if not pairs:
        return np.full(n_classes, np.nan)
    p, mask = np.zeros(n_classes), np.ones(n_classes, dtype=bool)
    for code, probability in pairs:
        p[code] += probability
        mask[code] = False
    p[mask] = max(1.0 - float(p.sum()), 0.0) / max(int(mask.sum()), 1)
    return p / max(float(p.sum()), 1e-12)


def training_of(state: ProjectState) -> Mapping[int, int]:
    """Item -> code of what a model may learn: of items that several labelled, what they mean together.

    A decision stands, and so does what people said after a file. A consensus that is less sure than
    `LEARNT_FROM` teaches nothing.

    Args:
        state: of the project.
    """
    together = item_consensus(state)
    if together is None:
        return state.training
    changed: dict[int, int | None] = {}
    for item, (code, certainty) in together.decided.items():
        if _is_decided(state, item) or item in state.evaluation:
            continue
        learnt = code if certainty >= LEARNT_FROM else None
        if state.training.get(item) != learnt:
            changed[item] = learnt
    if not changed:
        return state.training
    learnt_codes = ((item, changed.get(item, state.training.get(item))) for item in state.codes)
    return {item: code for item, code in learnt_codes if code is not None}


def _is_decided(state: ProjectState, item: int) -> bool:
    """True if somebody decided about an item, or labelled it after a file."""
    votes = list(state.votes[item].values())
    return state.standing[item].final or len(votes_since(votes)) < len(votes)


class AnswerModel:
    """Model of how people answer, and what the answers to an item say of its class.

    Args:
        n_classes: C.
        together: what is known of people, also of a while ago; of whom nothing is known is as everybody.
    """

    def __init__(self, n_classes: int, together: ItemConsensus | None = None) -> None:
        self.n_classes = C = n_classes
        self.together = together
        self._unknown = np.full((C, C), (1.0 - ACCURACY) / max(C - 1, 1))
        np.fill_diagonal(self._unknown, ACCURACY)
        self._confusions: dict[str, Floats] = {}
        if together is not None and together.found.confusions.shape[1] == C:
            self._unknown = everybody(together.found)
            self._confusions = dict(zip(together.people, together.found.confusions, strict=True))
        self._kept: dict[int, tuple[Mapping[str, Vote], Floats]] = {}

    def confusion(self, annotator: str) -> Floats:
        """[C, C] of an item of class c, the chance that a person answers v."""
        return self._confusions.get(annotator, self._unknown)

    def posteriors(self, state: ProjectState, items: Sequence[int], soon: Sequence[int] = ()) -> Floats:
        """[n, C] of the class of labelled items: by their answers, and what the model said before any.

        Args:
            state: of the project; rows are kept while an item's answers stay the same.
            items: labelled ones.
            soon: those that are looked at with them where one is new, as all asks are walked over for it.
        """

        def changed_of(rows: Sequence[int]) -> list[int]:
            return [i for i in rows if i not in self._kept or self._kept[i][0] != state.votes[i]]

        changed = changed_of(items)
        if changed:
            changed = changed_of(list(dict.fromkeys((*items, *soon))))
        codes = {key: code for code, key in enumerate(state.keys)}
        guesses = first_guesses(state, changed, codes) if changed else {}
        for item in changed:
            prior = _spread(guesses.get(item, ()), self.n_classes)
            silent = bool(np.isnan(prior).any())
            logs = np.zeros(self.n_classes) if silent else 0.5 * np.log(np.maximum(prior, 1e-3))
            for person, code in own_codes(state.votes[item], state, codes).items():
                logs = logs + np.log(self.confusion(person)[:, code])
            e = np.exp(logs - logs.max())
            self._kept[item] = dict(state.votes[item]), e / e.sum()
        return np.stack([self._kept[item][1] for item in items])


# ---------------------------------------------------------------------- reports


def people_report(state: ProjectState, events: Iterable[Event]) -> PeopleReport:
    """Figures of the people of a project.

    Args:
        state: of the project.
        events: of the project, for how long labels took.
    """
    codes = {key: code for code, key in enumerate(state.keys)}
    labelled = Counter(person for votes in state.votes.values() for person in own_codes(votes, state, codes))
    together = item_consensus(state)
    seconds = _seconds(events)
    names = tuple(state.classes)
    shared = np.bincount(() if together is None else together.ratings[:, 1])
    chance = _DRIFT_P / max(int((shared >= _DRIFT_FROM).sum()), 1)
    people = [
        _person(name, n, together, state, names, seconds.get(name, ()), chance)
        for name, n in labelled.items()
    ]
    people.sort(key=lambda person_report: (-person_report.n_labels, person_report.name))
    if together is None:
        return PeopleReport(tuple(people))
    counts = np.zeros((len(together.items), len(names)), dtype=np.int64)
    np.add.at(counts, (together.ratings[:, 0], together.ratings[:, 2]), 1)
    free = [i for i in together.items if not _is_decided(state, i)]
    decided = together.decided
    return PeopleReport(
        tuple(people),
        krippendorff_alpha(counts),
        alpha_interval(counts),
        n_drawn(state, together.items),
        len(free),
        sum(i in state.undecided or decided[i][0] != state.codes.get(i) for i in free),
        sum(decided[i][1] < LEARNT_FROM for i in free),
        together.found.weight,
        *_confusions(together, state, names),
    )


def shown_people(report: PeopleReport, hidden: bool, seed: str) -> list[tuple[str, PersonReport]]:
    """People with what they are called here, in the order of the table.

    Args:
        report: of the project.
        hidden: by numbers, in an order that says nothing of who they are.
        seed: of that order: the project's id.
    """
    if not hidden:
        return [(person.name, person) for person in report.people]
    order = np.random.default_rng(list(seed.encode())).permutation(len(report.people))
    names = sorted(person.name for person in report.people)
    number = {name: int(order[place]) + 1 for place, name in enumerate(names)}
    rows = [(f"Person {number[person.name]}", person) for person in report.people]
    return sorted(rows, key=lambda pair: number[pair[1].name])


def _seconds(events: Iterable[Event]) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {}
    for event in events:
        if event.kind == "label" and event.payload.get("seconds") is not None:
            seconds.setdefault(event.annotator, []).append(float(event.payload["seconds"]))
    return seconds


def _person(
    name: str,
    n_labels: int,
    together: ItemConsensus | None,
    state: ProjectState,
    classes: Sequence[str],
    seconds: Sequence[float],
    drift_p: float,
) -> PersonReport:
    pace = median(seconds) if seconds else float("nan")
    if together is None or name not in together.people:
        none = float("nan")
        return PersonReport(name, n_labels, 0, none, 0.0, 1.0, none, (), pace, None, ())
    person = together.people.index(name)
    ratings = together.ratings[together.ratings[:, 1] == person]
    own = [own_votes(state.votes[together.items[i]], state)[name] for i in ratings[:, 0]]
    order = np.argsort([vote.event for vote in own], kind="stable")
    agreed: list[bool] = []
    confusions: dict[tuple[str, str], int] = {}
    disagreements: list[Disagreement] = []
    for i, _, code in ratings[order].tolist():
        q = without_person(together.found, i, person, code)
        best = int(q.argmax())
        agreed.append(best == code)
        if best != code:
            pair = (classes[best], classes[code])
            confusions[pair] = confusions.get(pair, 0) + 1
            if q[best] >= DISAGREEMENT_FROM:
                disagreements.append(
                    Disagreement(together.items[i], classes[code], classes[best], float(q[best]))
                )
    agreement = share_interval(sum(agreed), len(agreed))
    pairs = sorted(confusions.items(), key=lambda entry: (-entry[1], entry[0]))[:MOST_CONFUSIONS]
    return PersonReport(
        name,
        n_labels,
        len(agreed),
        agreement.value,
        agreement.low,
        agreement.high,
        float(together.found.accuracies[person]),
        tuple((true, answer, n) for (true, answer), n in pairs),
        pace,
        _drift(agreed, drift_p),
        tuple(sorted(disagreements, key=lambda entry: -entry.certainty)[:MOST_DISAGREEMENTS]),
    )


def _drift(agreed: Sequence[bool], below: float) -> tuple[float, float] | None:
    """Agreement of the first and of the second half, where Fisher's exact test has a p below this."""
    half = len(agreed) // 2
    if half < _DRIFT_FROM // 2:
        return None
    from scipy.stats import fisher_exact

    a, b = sum(agreed[:half]), sum(agreed[half:])
    m = len(agreed) - half
    p = fisher_exact([[a, half - a], [b, m - b]]).pvalue
    return (a / half, b / m) if p < below else None


def _confusions(
    together: ItemConsensus, state: ProjectState, classes: Sequence[str]
) -> tuple[tuple[ConfusedClasses, ...], int, int]:
    """Classes taken for each other by people and by the model, and of how many answers and guesses."""
    meant_by = together.found.codes
    counts: dict[tuple[int, int], list[int]] = {}
    for i, _, code in together.ratings.tolist():
        if code != meant_by[i]:
            counts.setdefault((int(meant_by[i]), code), [0, 0])[0] += 1
    codes = {key: code for code, key in enumerate(state.keys)}
    guesses = first_guesses(state, together.items, codes)
    place = {item: i for i, item in enumerate(together.items)}
    for item, pairs in guesses.items():
        true, guess = int(meant_by[place[item]]), max(pairs, key=lambda pair: pair[1])[0] if pairs else -1
        if guess not in (true, -1):
            counts.setdefault((true, guess), [0, 0])[1] += 1
    confusions = [ConfusedClasses(classes[a], classes[b], *n) for (a, b), n in counts.items()]
    confusions.sort(
        key=lambda confusion: (-confusion.people - confusion.model, confusion.true, confusion.said)
    )
    return tuple(confusions[:MOST_DISAGREEMENTS]), len(together.ratings), len(guesses)


def _words(report: PeopleReport) -> str:
    if not report.people:
        return "Nobody has labelled anything yet."
    people = [person.name for person in report.people if person.name != SOURCE]
    file = len(people) < len(report.people)  # the labels that came with it
    if not people:
        return "Nobody has labelled anything yet but the file."
    if len(people) == 1 and report.alpha is None:
        return (
            f"Only {people[0]} has labelled so far. How far people agree needs a second person: "
            "share the project, and let several label the same items."
        )
    who = f"{len(people)} {'person' if len(people) == 1 else 'people'}{' and the file' if file else ''}"
    if report.alpha is None or report.interval is None:
        return f"{who} have labelled, and no item has labels of two of them, so agreement says nothing."
    _, low, high, n = report.interval
    sentence = f"{who}, {n:,} items with labels of two or more{picked_words(report.n_drawn, n)}"
    if np.isnan(report.alpha.kappa):
        return f"{sentence}. All are of one class, so Krippendorff's alpha says nothing yet."
    if n < ENOUGH:
        reach = f"{low:.2f} to {high:.2f}"
        return f"{sentence}. Krippendorff's alpha may be anything from {reach}: too early to tell."
    return f"{sentence}: Krippendorff's alpha is {report.alpha.kappa:.2f} ({low:.2f} to {high:.2f})."


LATELY = timedelta(minutes=10)


@dataclass(frozen=True)
class Person:
    """One who labels.

    Attributes:
        name: theirs.
        labels: items that they gave a class which stands.
        last: when they last answered; None where all of their answers were taken away.
        a_minute: answers a minute over the last ten minutes, or since their first where that is less.
    """

    name: str
    labels: int
    last: datetime | None
    a_minute: float


def labelled_here(state: ProjectState) -> Counter[str]:
    """Person -> their labels that stand; those of the pool's own column and of files are nobody's here."""
    votes = (vote for of_item in state.votes.values() for vote in of_item.values())
    return Counter(vote.annotator for vote in votes if vote.role != IMPORTED)


def people_of(state: ProjectState, events: Sequence[Event], now: datetime | None = None) -> list[Person]:
    """The people of a project, who answered last first.

    Args:
        state: of the project.
        events: of the project, oldest first.
        now: the present moment unless given.
    """
    now = now or datetime.now(UTC)
    labels = labelled_here(state)
    times = _answered(events, now - LATELY, set(labels))
    people = []
    for name, n in labels.items():
        last, lately = times.get(name, (None, []))
        since = now - lately[-1] if lately else LATELY
        minutes = max(1.0, min(since, LATELY) / timedelta(minutes=1))
        people.append(Person(name, n, last, len(lately) / minutes))
    first = datetime.min.replace(tzinfo=UTC)
    return sorted(people, key=lambda person: person.last or first, reverse=True)


def _answered(
    events: Sequence[Event], begin: datetime, names: set[str]
) -> Mapping[str, tuple[datetime, list[datetime]]]:
    """Of each person their last answer, and those since `begin`, newest first."""
    times: dict[str, tuple[datetime, list[datetime]]] = {}
    for event in reversed(events):
        at = datetime.fromisoformat(event.time)
        if at < begin and len(times) == len(names):
            break
        if event.kind not in ANSWERS or event.annotator not in names:
            continue
        _, lately = times.setdefault(event.annotator, (at, []))
        if at >= begin:
            lately.append(at)
    return times
