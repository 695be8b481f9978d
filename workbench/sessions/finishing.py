"""Finishing a project: freeze what the machine would label, check it at random, and say what it is worth."""

import time
from collections.abc import Sequence

import numpy as np

from workbench.arrays import Array, Floats, Ints, items_and_codes
from workbench.certificates import (
    MODEL,
    Certificate,
    Plan,
    Promise,
    confidence_at,
    plan,
)
from workbench.errors import InputError
from workbench.guesses import columns_of, guess_of
from workbench.sessions.asking import new_ask
from workbench.sessions.checks import (
    Candidates,
    Frozen,
    answers_of,
    drawn,
    is_looked_at_again,
    n_answered,
)
from workbench.sessions.finish_state import (
    FinishState,
    finish_state_of,
    last_frozen,
    machine_part,
    void_because,
)
from workbench.sessions.part import Part
from workbench.sessions.published import Published
from workbench.store import Ask, Check, Event, ProjectState
from workbench.store.database_errors import retried

CHECK_LEASE = 180.0
"""Seconds during which nobody else is given a check that somebody has on screen."""
PASSED = 8
"""Answers to later draws after which a check that somebody has on screen is given to the next person too."""
ERROR, CONFIDENCE = 0.05, 0.95


class Checks(Part):
    """Checks of frozen labels, and the certificate that they earn: `Session.checks`."""

    def candidates(self, of: str = MODEL) -> Candidates:
        """The labels that would be frozen now: of every item that nobody has labelled.

        Args:
            of: "model", or a column of somebody's labels, "column:NAME".

        Raises:
            InputError: no model yet, no such column, or nothing left to label.
        """
        with self._session.log.snapshot():
            return self._of_model() if of == MODEL else self._of_column(of, self._unlabelled())

    def _of_model(self) -> Candidates:
        session = self._session
        items, published = self._left_to_model()
        p = published.model.probabilities_at(items)
        measured, truth = session.fits.held_out()
        q = published.model.probabilities_at(measured) if measured.size else np.empty((0, p.shape[1]))
        calibration = q.max(axis=1), q.argmax(axis=1) != truth
        return _surest_first(
            MODEL, items, p.argmax(axis=1), p.max(axis=1), published.keys, published.model.number, calibration
        )

    def n_candidates(self, of: str = MODEL) -> int:
        """Number of `candidates`, for which no model predicts; the same errors."""
        with self._session.log.snapshot():
            return len(self._left_to_model()[0] if of == MODEL else self.candidates(of).items)

    def _unlabelled(self) -> Ints:
        """Items of the pool that no person has labelled."""
        pool, codes = self._session.pool, self._session.state.codes
        open_ = np.ones(len(pool), dtype=bool)
        open_[items_and_codes(codes)[0]] = False
        return pool.trainable[open_[pool.trainable]]

    def _left_to_model(self) -> tuple[Ints, Published]:
        """Items that the model would label, and its predictions."""
        published = self._session.fits.published()
        if published is None:
            raise InputError("There is no model to label the rest: label items of two classes first.")
        items = self._unlabelled()
        if not items.size:
            raise InputError("Every item has a label of a person's: nothing is left for the machine.")
        return items, published

    def _of_column(self, of: str, items: Ints) -> Candidates:
        session = self._session
        state = session.state
        sources = session.fits.guesses.now(session.settings, state)
        stored = {entry.source: entry.guess for entry in sources}
        guess = stored.get(of) or guess_of(of, session.pool, state.classes)
        codes = np.asarray(guess.codes)[items]
        mask = codes >= 0
        if not mask.any():
            raise InputError(f"{of} names none of the classes in what nobody has labelled yet.")
        none = np.full(int(mask.sum()), np.nan)
        labelled_items = np.array([i for i in state.codes if guess.codes[i] >= 0], dtype=np.int64)
        wrong = np.array([guess.codes[i] != state.codes[i] for i in labelled_items.tolist()], dtype=bool)
        return _surest_first(
            of, items[mask], codes[mask], none, state.keys, -1, (np.full(len(labelled_items), np.nan), wrong)
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
        measured_risk = 1.0 - sure if of == MODEL else np.full(len(wrong), error / 10)
        return plan(
            risk,
            error,
            confidence_at(confidence, self.attempt_next),
            held_out=(measured_risk, wrong) if len(wrong) else None,
            seed=int(self._session.settings["seed"]),
        )

    @property
    def attempt_next(self) -> int:
        """The number of the next attempt, from 1 on."""
        return len(self._session.state.frozen) + 1

    def start(
        self,
        error: float = ERROR,
        confidence: float = CONFIDENCE,
        *,
        of: str = MODEL,
        per_class: bool = False,
    ) -> FinishState:
        """Freeze the labels, and the order in which they are checked.

        Labels that are frozen already, with the same promise, stay so: nobody draws until it looks good. Any
        other start is a further attempt, and spends what is left of delta (`delta_of`).

        Args:
            error: the share of wrong labels that is allowed.
            confidence: of all attempts together.
            of: "model", or "column:NAME".
            per_class: state precision and recall of each class in the certificate.

        Returns:
            What the checks say now.

        Raises:
            InputError: nothing to freeze, shares that are none, or more attempts than there can be.
        """
        candidates = self.candidates(of)
        size = len(candidates.items)
        sizes = [size]  # of a column no confidence tells which of them are surer
        if of == MODEL:
            sizes = [int(n) for n in self.forecast(error, confidence, found=candidates).sizes()]
        promise = Promise(
            size, float(error), float(confidence), tuple(sizes), self.attempt_next, of, per_class
        )
        self._do("freeze", value=(candidates, promise))
        now = self.state()
        assert now is not None
        return now

    def frozen(self) -> Frozen | None:
        """The labels that were frozen last, or None."""
        return last_frozen(self._session.state, self._session.pool.items.ids)

    def state(self) -> FinishState | None:
        """State of the checks now; None where none were started."""
        state = self._session.state
        frozen = last_frozen(state, self._session.pool.items.ids)
        return None if frozen is None else finish_state_of(frozen, state)

    def relabelled(self, finish: FinishState) -> list[int]:
        """Certified items that nobody has labelled and the model of now would give another class.

        Args:
            finish: what the checks say now; "certified", of the model.

        Raises:
            InputError: as `candidates`.
        """
        with self._session.log.snapshot():
            now, labels = self.candidates(), machine_part(finish, self._session.state)
        frozen, codes = finish.frozen, dict(zip(now.items.tolist(), now.codes.tolist(), strict=True))
        return [item for item in labels if now.keys[codes[item]] != frozen.key(frozen.place_of[item])]

    def next(self) -> Ask | None:
        """The next check of this annotator, leased to them; None where nothing is left to check."""
        return next(iter(self.ask()), None)

    @retried
    def ask(self, k: int = 1, *, lease: float = CHECK_LEASE) -> list[Ask]:
        """The next checks of this annotator in the frozen order, leased: nobody else gets the same.

        Args:
            k: how many.
            lease: seconds during which nobody else is given them.

        Returns:
            At most k, recorded; those they hold already come first.

        Raises:
            InputError: no checks were started, or what was frozen is not there any more.
        """
        session = self._session
        state = session.state
        checks = self._checks(state, k, time.time())
        if len(checks) == k and all(a.expires > time.time() for a in checks):
            return checks  # a reload asks for what it was shown: nothing to record
        with session._project.recording() as transaction:
            moment = time.time()
            asks = self._checks(transaction.state, k, moment)
            return session._answers.lease(transaction, asks, moment, lease)

    def _checks(self, state: ProjectState, k: int, moment: float) -> list[Ask]:
        session = self._session
        frozen = last_frozen(state, session.pool.items.ids)
        if frozen is None:
            raise InputError("No checks were started: start them first.")
        if why := void_because(frozen, state):
            raise InputError(why)
        leased_items = session._questions.leased(state, moment, session.annotator, role="check")
        waiting = (state.asks[i] for i in state.waiting.get(session.annotator, ()))
        own_asks = {
            a.item: a for a in waiting if a.role == "check" and not a.released and a.check == frozen.started
        }
        later = n_answered(frozen, state)  # answers to draws behind the one that is looked at
        asks: list[Ask] = []
        for place in drawn(frozen):
            if len(asks) == k:
                break
            item = int(frozen.items[place])
            answers = answers_of(frozen, state, item)
            later -= bool(answers)
            if answers and not self._looks_again(frozen, place, answers):
                continue
            if item in own_asks:
                asks.append(own_asks[item])
            elif item not in leased_items or (later >= PASSED and not answers):
                asks.append(new_ask(item, "check", check=frozen.started))
        return asks

    def _looks_again(self, frozen: Frozen, place: int, answers: Sequence[Check]) -> bool:
        """Tell whether a check that somebody has answered is one for this annotator to answer, too."""
        is_new = len(answers) == 1 and answers[0].annotator != self._session.annotator
        return is_new and is_looked_at_again(frozen, place, answers)

    def hidden_columns(self) -> frozenset[str]:
        """Columns that hold the labels which are checked, or a guess: whoever checks sees none of them."""
        session = self._session
        frozen = self.frozen()
        sources = {str(guess["source"]) for guess in session.settings.get("guesses") or ()}
        sources |= set() if frozen is None else {frozen.promise.of}
        names = [str(name) for name in session.pool.items.show(0).row or {}]
        return frozenset(name for source in sources if ":" in source for name in columns_of(source, names))

    def answer(self, ask_id: str, label: str | None, *, operation: str | None = None) -> bool:
        """Answer a check; durable before it returns. It is a label for the model from then on.

        Args:
            ask_id: from `next`.
            label: name of the class; None where one cannot tell, which counts as a wrong label.
            operation: an id of the caller's; told again it is True, and nothing is repeated.

        Returns:
            Whether it was taken; not where somebody else has answered.
        """
        return self._session.tell(ask_id, Event.unsure() if label is None else label, operation=operation)

    def certificate(self) -> Certificate | None:
        """The certificate that the checks earn now, recorded where it is new; None where they do not suffice.

        A label that a person gives afterwards, or a class that is called otherwise, makes another one, as the
        finished set is another.

        Raises:
            InputError: what was frozen is not there any more.
        """
        finish = self.state()
        if finish is None or finish.phase not in ("certified", "void"):
            return None
        if finish.phase == "void":
            raise InputError(finish.why)
        event = self._do("certify").event
        if event is not None:
            return Certificate.from_json(event.payload["certificate"])
        now = self.state()  # somebody else may have had it recorded since
        if now is None or now.phase != "certified" or now.certificate is None:
            return None
        return Certificate.from_json(now.certificate)


def _surest_first(
    of: str,
    items: Ints,
    codes: Ints,
    confidences: Floats,
    keys: tuple[str, ...],
    number: int,
    calibration: tuple[Floats, Array],
) -> Candidates:
    order = np.argsort(-np.nan_to_num(confidences, nan=0.0), kind="stable")
    return Candidates(
        of, items[order], np.asarray(codes)[order], confidences[order], tuple(keys), number, calibration
    )
