"""Certificates are recomputed from two documents, and every edit of either breaks them."""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from workbench.certificates import (
    Certificate,
    Check,
    Draws,
    Labelled,
    Promise,
    certificate_of,
    checksum_of,
    has_second_look,
    listed_order,
    seed_of,
    verify,
)
from workbench.certificates.promise import facts_of
from workbench.errors import InputError

ERROR, CONFIDENCE = 0.2, 0.8


def made(
    size: int = 40, wrong: tuple[int, ...] = (), sizes: tuple[int, ...] | None = None, checks: int = 20
) -> tuple[Certificate, list[Labelled]]:
    """A finished set: `size` frozen labels, the ranks in `wrong` wrong, and 3 labelled before."""
    ids = [f"item {i:03d}" for i in range(size)]
    ranks = {item: (7 * i) % size for i, item in enumerate(ids)} if sizes else dict.fromkeys(ids, 0)
    frozen = {item: "cat" if i % 3 else "=dog" for i, item in enumerate(ids)}
    truth = {
        item: ("bird" if (ranks[item] if sizes else i) in wrong else frozen[item])
        for i, item in enumerate(ids)
    }
    order = listed_order(frozen)
    done = [
        Check(number, order[place], frozen[order[place]], truth[order[place]], ranks[order[place]], "ann")
        for number, place in enumerate(Draws(size, seed_of(checksum_of(frozen))).first(checks).tolist(), 1)
    ]
    people = {check.item: check.answer for check in done} | {f"before {i}": "cat" for i in range(3)}
    promise = Promise(size, ERROR, CONFIDENCE, sizes or (size,))
    draft = certificate_of(promise, frozen, ranks, done)
    people |= {one.item: truth[one.item] for one in draft.apart}
    certificate = certificate_of(
        promise,
        frozen,
        ranks,
        done,
        labelled=people,
        project="Näme <b>",
        made="2026-01-02T03:04:05+00:00",
        versions={"workbench": "0.1.0"},
    )
    rows = [
        Labelled(item, people.get(item, frozen.get(item, "")), "person" if item in people else "machine")
        for item in [*ids, *(f"before {i}" for i in range(3))]
    ]
    return certificate, rows


@pytest.mark.parametrize("sizes", [None, (20, 30, 40), (30,)])
def test_a_certificate_holds_for_its_labels_after_a_round_trip(sizes: tuple[int, ...] | None) -> None:
    certificate, rows = made(sizes=sizes)
    again = Certificate.from_json(certificate.to_json())
    assert again == certificate
    assert again.to_json() == certificate.to_json()
    verdict = verify(again, rows[::-1])
    assert verdict.holds, verdict.text()
    assert verdict.text().startswith("Yes: ")
    assert certificate.delivered == (sizes or (40,))[-1]


def test_sets_beyond_the_certified_one_go_to_people() -> None:
    certificate, rows = made(wrong=tuple(range(25, 40)), sizes=(20, 40), checks=30)
    assert certificate.delivered == 20
    assert {one.rank for one in certificate.apart} | {c.rank for c in certificate.checks} >= set(
        range(20, 40)
    )
    assert verify(certificate, rows).holds
    assert "the surest of 40" in certificate.sentence


def test_the_sentence_says_what_was_found() -> None:
    certificate, _ = made()
    assert certificate.sentence == (
        "40 machine labels; with 80 % confidence a checker calls at most 20 % of them wrong; "
        "20 random checks, 0 called wrong."
    )
    failed, rows = made(wrong=tuple(range(0, 40, 2)))
    assert failed.delivered == 0
    assert failed.sentence.startswith("Not certified at 20 %: the estimate is ")
    verdict = verify(failed, rows)
    assert not verdict.holds
    assert verdict.broken == (failed.sentence,)


def _every_edit(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[tuple[Any, ...], Any]]:
    """Each place of a document with another value of its kind."""
    if isinstance(document, dict):
        return [edit for key, value in document.items() for edit in _every_edit(value, (*path, key))]
    if isinstance(document, list):
        inner = [edit for i, value in enumerate(document) for edit in _every_edit(value, (*path, i))]
        return [*inner, (path, document[:-1])] if document else inner
    if isinstance(document, bool):
        return [(path, not document)]
    if isinstance(document, int):
        return [(path, document + 1)]
    if isinstance(document, float):
        return [(path, document / 2)]
    return [(path, f"{document}x"), (path, "")] if document else [(path, "x")]


def _edited(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    copy = json.loads(json.dumps(document))
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return copy


@pytest.mark.parametrize("sizes", [None, pytest.param((20, 40), marks=pytest.mark.slow)])  # alone: of sets
def test_every_single_edit_of_the_certificate_breaks_it(sizes: tuple[int, ...] | None) -> None:
    certificate, rows = made(wrong=tuple(range(25, 40)) if sizes else (), sizes=sizes, checks=30)
    document = json.loads(certificate.to_json())
    edits = _every_edit(document)
    assert len(edits) > 150
    for path, value in edits:
        try:
            changed = Certificate.from_json(json.dumps(_edited(document, path, value)))
        except InputError:
            continue
        assert not verify(changed, rows).holds, path


@pytest.mark.parametrize("sizes", [None, pytest.param((20, 40), marks=pytest.mark.slow)])  # alone: of sets
def test_every_single_edit_of_the_labels_breaks_it_and_says_where(sizes: tuple[int, ...] | None) -> None:
    certificate, rows = made(wrong=tuple(range(25, 40)) if sizes else (), sizes=sizes, checks=30)
    for i, row in enumerate(rows):
        other = "machine" if row.source == "person" else "person"
        for changed in (
            [replace(row, label=row.label + "!")],
            [replace(row, item=row.item + "!")],
            [replace(row, source=other)],
            [],
            [row, row],
            [row, Labelled("one more", "cat", row.source)],
        ):
            verdict = verify(certificate, [*rows[:i], *changed, *rows[i + 1 :]])
            assert not verdict.holds, (row, changed)
            assert verdict.broken
            assert verdict.text().startswith("No: ")


def _redone(certificate: Certificate, **changes: Any) -> Certificate:
    """Somebody makes the text and the id fit as well."""
    return replace(certificate, **changes, sentence="", method="", id="")


def test_a_forger_who_seals_it_again_is_caught_by_draws_and_evidence() -> None:
    certificate, rows = made()
    failed, rows_of_failed = made(wrong=tuple(range(0, 40, 2)))
    assert not verify(_redone(failed, delivered=40), rows_of_failed).holds
    checks = certificate.checks
    forgeries: list[Callable[[], Certificate]] = [
        lambda: _redone(certificate, seed=certificate.seed + 1),
        lambda: _redone(certificate, delivered=0),
        lambda: _redone(certificate, promise=replace(certificate.promise, error=0.5), delivered=0),
        lambda: _redone(certificate, promise=replace(certificate.promise, attempt=2)),
        lambda: _redone(certificate, beside=20_000),
        lambda: _redone(certificate, people_sha256=checksum_of({"before 0": "cat"})),
        lambda: _redone(
            certificate, checks=tuple(replace(c, draw=i) for i, c in enumerate(checks[2:], 1)), delivered=0
        ),
        lambda: _redone(certificate, checks=checks[:1] + checks[2:]),
        lambda: _redone(certificate, promise=replace(certificate.promise, size=39, sizes=(39,))),
    ]
    for forged in forgeries:
        assert not verify(forged(), rows).holds


def test_labels_without_sources_are_those_that_were_frozen() -> None:
    """A finished column: rows as they were, with the checked ones mended or not."""
    certificate, rows = made()
    column = [Labelled(row.item, row.label) for row in rows[:40]]
    audit = _redone(certificate, people_sha256="", beside=0)
    assert verify(audit, column).holds
    assert not verify(audit, column[1:]).holds
    assert not verify(audit, [replace(column[0], label="bird"), *column[1:]]).holds


def test_what_people_changed_afterwards_is_said() -> None:
    certificate, rows = made(checks=15)
    checked = {check.item for check in certificate.checks}
    row = next(row for row in rows if row.source == "machine" and row.item not in checked)
    frozen = {r.item: r.label for r in rows[:40]}
    redone = certificate_of(
        certificate.promise, frozen, dict.fromkeys(frozen, 0), certificate.checks, apart=[row.item]
    )
    assert redone.delivered == 40
    people = [replace(r, source="person", label="bird") if r is row else r for r in rows]
    verdict = verify(redone, people)
    assert verdict.holds, verdict.text()
    assert "1 were labelled by a person or removed afterwards" in verdict.text()
    # or removed
    assert verify(redone, [r for r in rows if r is not row]).holds
    assert not verify(redone, rows).holds


def test_a_check_on_which_two_people_disagree_counts_as_wrong_until_somebody_decides() -> None:
    certificate, rows = made()
    checks = certificate.checks
    first = checks[0]
    other = "dog" if first.label == "cat" else "cat"
    looked = replace(first, answers=(("ann", first.answer), ("bob", other)))
    disputed = _redone(certificate, checks=(looked, *checks[1:]))
    assert looked.wrong and "20 random checks, 1 called wrong" in disputed.sentence
    drawn = sum(has_second_look(certificate.seed, check.item) for check in checks)
    assert disputed.second_looks == (drawn, 1, 1, 1)
    said = f"1 of {drawn} were made, 1 disagreed, 1 of these count as wrong until somebody decides"
    assert said in verify(disputed, rows).text() and said in disputed.to_html()
    decided = _redone(disputed, checks=(replace(looked, decided=first.label), *checks[1:]))
    assert not decided.checks[0].wrong and decided.second_looks.open == 0
    assert verify(decided, rows).holds
    # what the finished set holds is one of the answers, and nothing else
    changed = [replace(row, label="bird") if row.item == first.item else row for row in rows]
    assert not verify(decided, changed).holds
    for forged in (
        replace(looked, answers=(("ann", other), ("bob", first.answer)), decided=first.label),
        replace(first, decided=first.label),
    ):
        assert not verify(_redone(certificate, checks=(forged, *checks[1:])), rows).holds


def test_one_check_in_ten_has_a_second_look_and_the_seed_says_which() -> None:
    drawn = [has_second_look(7, f"item {i}") for i in range(5_000)]
    assert 400 < sum(drawn) < 600
    assert drawn == [has_second_look(7, f"item {i}") for i in range(5_000)]
    assert drawn != [has_second_look(8, f"item {i}") for i in range(5_000)]


def test_checks_that_are_not_the_draws_are_refused() -> None:
    certificate, rows = made()
    frozen = {r.item: r.label for r in rows[:40]}
    swapped = [replace(certificate.checks[1], draw=1), replace(certificate.checks[0], draw=2)]
    with pytest.raises(InputError, match="Check 1 is not the draw of these labels"):
        certificate_of(certificate.promise, frozen, dict.fromkeys(frozen, 0), swapped)
    with pytest.raises(InputError, match="of 39 labels, and 40 are there"):
        certificate_of(replace(certificate.promise, size=39, sizes=(39,)), frozen, {}, certificate.checks)


def test_what_nobody_could_tell_counts_as_wrong() -> None:
    check = Check(1, "a", "cat", "", 0)
    assert check.wrong


def test_checksums_do_not_depend_on_the_order_and_keep_cells_apart() -> None:
    assert checksum_of({"a": "1", "b": "2"}) == checksum_of({"b": "2", "a": "1"})
    assert checksum_of({"a": "b\nc"}) != checksum_of({"a": "b", "c": ""})
    odd = {"ü\ud800": "😀", 'a"\\': "\x00\n\x7f", "": ","}
    lines = [json.dumps([item, odd[item]], separators=(",", ":")) + "\n" for item in sorted(odd)]
    assert checksum_of(odd) == hashlib.sha256("".join(lines).encode("ascii")).hexdigest()


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", "null", '{"kind": "certificate"}', b"\xff\xfe", '{"kind": "certificate", "error": NaN}'],
)
def test_what_is_no_certificate_is_refused(text: str | bytes) -> None:
    with pytest.raises(InputError):
        Certificate.from_json(text, "a.json")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("promise.error", 0.0),
        ("promise.error", 1.0),
        ("promise.error", "0.05"),
        ("promise.size", 0),
        ("promise.sizes", []),
        ("promise.attempt", 0),
        ("promise.extra", 1),
        ("seed", -1),
        ("extra", 1),
        ("delivered", 2.5),
        ("made", "yesterday"),
    ],
)
def test_values_outside_their_range_are_refused(field: str, value: Any) -> None:
    document = json.loads(made()[0].to_json())
    inner, _, name = field.rpartition(".")
    place = document[inner] if inner else document
    place[name] = value
    with pytest.raises(InputError, match="certificate"):
        Certificate.from_json(document)


def test_the_page_is_whole_and_runs_nothing() -> None:
    certificate, _ = made()
    text = certificate.to_html()
    assert "<script" not in text
    assert "http" not in text
    assert "Certificate of Näme &lt;b&gt;" in text
    assert certificate.id in text
    assert text.count("<tr>") + text.count("<tr class=wrong>") > len(certificate.checks)
    assert "=dog" in text


def test_labels_that_were_not_frozen_are_counted_and_nothing_is_said_of_them() -> None:
    certificate, rows = made()
    assert certificate.beside == 3 and "Labels beside, not checked" in certificate.to_html()
    assert "43" not in certificate.sentence
    one_more = [*rows, Labelled("before 3", "cat", "person")]
    assert not verify(certificate, one_more).holds and not verify(certificate, rows[:-1]).holds


def test_classes_have_intervals_of_their_own_where_the_set_is_certified() -> None:
    frozen = {f"item {i:03d}": "cat" if i % 3 else "dog" for i in range(40)}
    order = listed_order(frozen)
    places = Draws(40, seed_of(checksum_of(frozen))).first(40).tolist()
    ranks = dict.fromkeys(frozen, 0)

    def checked(wrong: set[str]) -> Certificate:
        done = [
            Check(
                n, order[at], frozen[order[at]], "bird" if order[at] in wrong else frozen[order[at]], 0, "ann"
            )
            for n, at in enumerate(places, 1)
        ]
        promise = Promise(40, ERROR, CONFIDENCE, (40,), per_class=True)
        return certificate_of(promise, frozen, ranks, done)

    certified = checked({"item 000"})
    assert certified.holds
    told = {one.name: one for one in certified.classes}
    dog, cat = told["dog"], told["cat"]
    assert (dog.size, cat.size, told["bird"].size) == (14, 26, 0)
    # everything was looked at: what is told is what is so
    assert dog.precision == pytest.approx((13 / 14, 13 / 14)) and cat.precision == (1.0, 1.0)
    # class, labels, checks, precision, recall
    assert re.search(r"<tr><td>cat</td><td>26</td><td>26</td>(<td>[^<]+</td>){2}</tr>", certified.to_html())
    assert checked(set(frozen)).classes == [], "of a set that is not certified nothing is told"


def test_checksums_stand_as_code_and_words_do_not() -> None:
    certificate, _ = made()
    assert f"<code>{certificate.labels_sha256}</code>" in certificate.to_html()
    named = replace(certificate, project="a project with a long name").to_html()
    assert (
        "<code>a project" not in named
        and "<code>abc</code>" not in replace(certificate, project="abc").to_html()
    )


def test_facts_say_what_is_counted_and_leave_out_what_is_not() -> None:
    certificate, _ = made()
    facts = dict(facts_of(certificate))
    assert (facts["Allowed error"], facts["Checks"]) == ("20 %", "20, of which 0 called wrong")
    assert facts["Checks beside the set"] == "" and "none disagreed" in facts["Second looks"]
    part, _ = made(wrong=tuple(range(25, 40)), sizes=(20, 40), checks=30)
    beside = sum(check.rank >= part.delivered for check in part.checks)
    assert beside and dict(facts_of(part))["Checks beside the set"] == str(beside)
