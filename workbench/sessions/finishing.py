"""Finishing a project: freeze what the machine would label, check it at random, and say what it is worth."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from workbench.arrays import Array, Floats, Ints
from workbench.certificates import (
    MODEL,
    Certificate,
    Plan,
    Promise,
    check_spent,
    checksum_of,
    confidence_at,
    plan,
    seed_of,
)
from workbench.errors import InputError
from workbench.guesses import columns_of, guess_of
from workbench.sessions.asking import Ask, new_ask
from workbench.sessions.certifying import issued
from workbench.sessions.checks import (
    Frozen,
    answers_of,
    drawn,
    frozen_of,
    is_looked_at_again,
    n_answered,
    plan_of,
)
from workbench.sessions.finish_state import FinishState, finish_state_of, last_frozen, void_because
from workbench.sessions.several import Several
from workbench.store import Check, Event, ProjectState
from workbench.store.events import now as utc_now
from workbench.store.retry import retried

CHECK_LEASE = 180.0
"""Seconds during which nobody else is given a check that somebody has on screen."""
PASSED = 8
"""Answers to later draws after which a check that somebody has on screen is given to the next person too."""
ERROR, CONFIDENCE = 0.05, 0.95


@dataclass(frozen=True, eq=False)
class Candidates:
    """Labels that could be frozen now.

    Attributes:
        of: "model", or the column they are of.
        items: [N] the surest first.
        codes: [N] places in `keys`.
        confidences: [N] NaN where none are given.
        keys: of the classes.
        round: number of the fit, -1 for a column.
        held_out: ([h] confidence, [h] whether wrong) of items whose answer is known, not learned from.
    """

    of: str
    items: Ints
    codes: Ints
    confidences: Floats
    keys: tuple[str, ...]
    round: int
    held_out: tuple[Floats, Array]


class Finishing(Several):
    """Checks of frozen labels, and the certificate that they earn."""

    def candidates(self, of: str = MODEL) -> Candidates:
        """The labels that would be frozen now: of every item that nobody has labelled.

        Args:
            of: "model", or a column of somebody's labels, "column:NAME".

        Raises:
            InputError: no model yet, no such column, or nothing left to label.
        """
        state = self.state
        open_ = np.ones(len(self.pool), dtype=bool)
        open_[np.fromiter(state.codes, dtype=np.int64, count=len(state.codes))] = False
        items = self.pool.trainable[open_[self.pool.trainable]]
        if of != MODEL:
            return self._of_column(of, items)
        published = self._fits.published(state)
        if published is None:
            raise InputError("There is no model to label the rest: label items of two classes first.")
        if not items.size:
            raise InputError("Every item has a label of a person's: nothing is left for the machine.")
        p = published.model.probabilities_at(items)
        measured, truth = self.held_out(state)
        q = published.model.probabilities_at(measured) if measured.size else np.empty((0, p.shape[1]))
        known = q.max(axis=1), q.argmax(axis=1) != truth
        return _surest_first(
            MODEL, items, p.argmax(axis=1), p.max(axis=1), published.keys, published.model.number, known
        )

    def _of_column(self, of: str, items: Ints) -> Candidates:
        state = self.state
        held = next((one.guess for one in self.guesses if one.source == of and one.guess is not None), None)
        guess = held if held is not None else guess_of(of, self.pool, state.classes)
        codes = np.asarray(guess.codes)[items]
        there = codes >= 0
        if not there.any():
            raise InputError(f"{of} names none of the classes in what nobody has labelled yet.")
        none = np.full(int(there.sum()), np.nan)
        known = np.array([i for i in state.codes if guess.codes[i] >= 0], dtype=np.int64)
        wrong = np.array([guess.codes[i] != state.codes[i] for i in known.tolist()], dtype=bool)
        return _surest_first(
            of, items[there], codes[there], none, state.keys, -1, (np.full(len(known), np.nan), wrong)
        )

    def forecast(
        self,
        error: float = ERROR,
        confidence: float = CONFIDENCE,
        of: str = MODEL,
        *,
        found: Candidates | None = None,
    ) -> Plan:
        """Forecast of the cost of a certificate, before the first check; never evidence.

        Args:
            error: the share of wrong labels one can live with.
            confidence: of the certificate.
            of: as in `candidates`.
            found: the candidates, where they are known.

        Raises:
            InputError: as `candidates`, or shares that are none.
        """
        found = self.candidates(of) if found is None else found
        sure, wrong = found.held_out
        # of a column nothing is known beforehand: it is as good as one that is worth checking
        risk = 1.0 - found.confidences if of == MODEL else np.full(len(found.items), error / 10)
        known = 1.0 - sure if of == MODEL else np.full(len(wrong), error / 10)
        return plan(
            risk,
            error,
            confidence_at(confidence, self.attempt_next),
            held_out=(known, wrong) if len(wrong) else None,
            seed=int(self.settings["seed"]),
        )

    @property
    def attempt_next(self) -> int:
        """The number of the next attempt, from 1 on."""
        return len(self.state.frozen) + 1

    def start_checks(
        self,
        error: float = ERROR,
        confidence: float = CONFIDENCE,
        *,
        of: str = MODEL,
        surest: int | None = None,
        per_class: bool = False,
    ) -> FinishState:
        """Freeze the labels, and the order in which they are checked.

        Labels that are frozen already, with the same promise, stay so: nobody draws until it looks good. Any
        other start is a further attempt, and spends what is left of delta (`delta_of`).

        Args:
            error: the share of wrong labels that is allowed.
            confidence: of all attempts together.
            of: "model", or "column:NAME".
            surest: begin with so many of the surest; what the forecast finds cheapest unless given.
            per_class: state precision and recall of each class in the certificate.

        Returns:
            What the checks say now.

        Raises:
            InputError: nothing to freeze, shares that are none, or more attempts than there can be.
        """
        found = self.candidates(of)
        size = len(found.items)
        if surest is not None and not 1 <= surest <= size:
            raise InputError(f"There are {size:,} labels to freeze; the surest can be 1 to {size:,} of them.")
        if surest is not None:
            sizes = list(dict.fromkeys([surest, size]))
        elif of != MODEL:
            sizes = [size]  # no confidence tells which of them are surer
        else:
            sizes = [int(n) for n in self.forecast(error, confidence, found=found).sizes()]
        return self._start(
            found,
            Promise(size, float(error), float(confidence), tuple(sizes), self.attempt_next, of, per_class),
        )

    @retried
    def _start(self, found: Candidates, promise: Promise) -> FinishState:
        ids = self.pool.items.ids
        with self._project.recording() as transaction:
            state = transaction.state
            promise = replace(promise, attempt=len(state.frozen) + 1)  # refuses one too many
            names = [state.class_names.get(key, key) for key in found.keys]
            checksum = checksum_of(
                {
                    str(ids[i]): names[c]
                    for i, c in zip(found.items.tolist(), found.codes.tolist(), strict=True)
                }
            )
            payload = plan_of(
                promise,
                seed_of(checksum),
                found.items,
                found.codes,
                found.confidences,
                found.keys,
                ids,
                found.round,
                checksum,
            )
            before = self.frozen_in(state)
            if before is not None and not void_because(before, state):
                same = replace(promise, attempt=before.promise.attempt)
                if (before.promise, before.checksum) == (same, payload["checksum"]):
                    return finish_state_of(before, state)
            earlier = [Promise.from_document(event.payload["promise"]) for event in state.frozen]
            check_spent(promise.confidence, [(one.confidence, one.attempt) for one in earlier])
            given_back = [
                i
                for who in state.waiting.values()
                for i in who
                if state.asks[i].role == "check" and not state.asks[i].released
            ]
            if given_back:
                self._add(transaction, Event.released(given_back))
            self._add(transaction, Event.checks_started(payload | {"n_items": len(self.pool)}))
            state = transaction.state
            return finish_state_of(frozen_of(state.frozen[-1], ids), state)

    def frozen_in(self, state: ProjectState | None = None) -> Frozen | None:
        """The labels that were frozen last, or None."""
        event = last_frozen(self.state if state is None else state)
        return None if event is None else frozen_of(event, self.pool.items.ids)

    def finish_state(self, state: ProjectState | None = None) -> FinishState | None:
        """State of the checks now; None where none were started."""
        state = self.state if state is None else state
        frozen = self.frozen_in(state)
        return None if frozen is None else finish_state_of(frozen, state)

    def next_check(self, person: str | None = None) -> Ask | None:
        """The next check of a person, leased to them; None where nothing is left to check.

        Args:
            person: this session's unless given.
        """
        session = self if person is None else self.as_annotator(person)
        found = session.next_checks(1)
        return found[0] if found else None

    @retried
    def next_checks(self, k: int = 1, *, lease: float = CHECK_LEASE) -> list[Ask]:
        """The next checks of this annotator in the frozen order, leased: nobody else gets the same.

        Args:
            k: how many.
            lease: seconds during which nobody else is given them.

        Returns:
            At most k, recorded; those they hold already come first.

        Raises:
            InputError: no checks were started, or what was frozen is not there any more.
        """
        state = self.state
        held = self._checks(state, k, time.time())
        if len(held) == k and all(a.expires > time.time() for a in held):
            return held  # a reload asks for what it was shown: nothing to record
        with self._project.recording() as transaction:
            moment = time.time()
            asks = self._checks(transaction.state, k, moment)
            return self._answers.lease(transaction, asks, moment, lease)

    def _checks(self, state: ProjectState, k: int, moment: float) -> list[Ask]:
        frozen = self.frozen_in(state)
        if frozen is None:
            raise InputError("No checks were started: start them first.")
        if why := void_because(frozen, state):
            raise InputError(why)
        taken = self._questions.checked_now(state, moment, self.annotator)
        waiting = (state.asks[i] for i in state.waiting.get(self.annotator, ()))
        mine = {
            a.item: a
            for a in waiting
            if a.role == "check" and not a.released and int(a.details.get("check", 0)) == frozen.started
        }
        later = n_answered(frozen, state)  # answers to draws behind the one that is looked at
        found: list[Ask] = []
        for place in drawn(frozen):
            if len(found) == k:
                break
            item = int(frozen.items[place])
            answers = answers_of(frozen, state, item)
            later -= bool(answers)
            if answers and not self._looks_again(frozen, place, answers):
                continue
            if item in mine:
                found.append(Ask.of(mine[item]))
            elif item not in taken or (later >= PASSED and not answers):
                found.append(replace(new_ask(item, "check"), check=frozen.started))
        return found

    def _looks_again(self, frozen: Frozen, place: int, answers: Sequence[Check]) -> bool:
        """Tell whether a check that somebody has answered is one for this annotator to answer, too."""
        is_new = len(answers) == 1 and answers[0].annotator != self.annotator
        return is_new and is_looked_at_again(frozen, place, answers)

    def hidden_from_checks(self) -> frozenset[str]:
        """Columns that hold the labels which are checked, or a guess: whoever checks sees none of them."""
        frozen = self.frozen_in()
        read = {str(one["source"]) for one in self.settings.get("guesses") or ()}
        read |= set() if frozen is None else {frozen.promise.of}
        names = [str(name) for name in self.pool.items.show(0).row or {}]
        return frozenset(name for source in read if ":" in source for name in columns_of(source, names))

    def answer_check(self, ask_id: str, label: str | None, *, operation: str | None = None) -> bool:
        """Answer a check; durable before it returns. It is a label for the model from then on.

        Args:
            ask_id: from `next_check`.
            label: name of the class; None where one cannot tell, which counts as a wrong label.
            operation: an id of the caller's; told again it is True, and nothing is repeated.

        Returns:
            Whether it was taken; not where somebody else has answered.
        """
        return self.tell(ask_id, Event.unsure() if label is None else label, operation=operation)

    def certificate(self) -> Certificate | None:
        """The certificate that the checks earn now, recorded where it is new; None where they do not suffice.

        A label that a person gives afterwards, or a class that is called otherwise, makes another one, as the
        finished set is another.

        Raises:
            InputError: what was frozen is not there any more.
        """
        now = self.finish_state()
        if now is None or now.phase not in ("certified", "void"):
            return None
        if now.phase == "void":
            raise InputError(now.why)
        return self._certify()

    @retried
    def _certify(self) -> Certificate | None:
        ids = self.pool.items.ids
        with self._project.recording() as transaction:
            state = transaction.state
            now = self.finish_state(state)
            if now is None or now.phase != "certified":
                return None
            known = None if now.certificate is None else Certificate.from_json(now.certificate)
            made = issued(now, state, ids, self.project.name, known.made if known else utc_now())
            if known is not None and made.id == known.id:
                return known
            if known is not None:
                made = issued(now, state, ids, self.project.name, utc_now())
            checked = zip(
                now.frozen.items[now.evidence.places].tolist(), now.evidence.wrong.tolist(), strict=True
            )
            self._add(transaction, Event.certified(now.frozen.started, list(checked), made.document()))
            return made


def _surest_first(
    of: str,
    items: Ints,
    codes: Ints,
    confidences: Floats,
    keys: tuple[str, ...],
    number: int,
    known: tuple[Floats, Array],
) -> Candidates:
    order = np.argsort(-np.nan_to_num(confidences, nan=0.0), kind="stable")
    return Candidates(
        of, items[order], np.asarray(codes)[order], confidences[order], tuple(keys), number, known
    )
