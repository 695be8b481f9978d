"""The panel of a job: the page runs again once the job has ended, whenever that is."""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from workbench.app.serving.jobs import Job, Status


def page_of_a_job(job: "Any") -> None:  # noqa: UP037  (it runs as a script of its own)
    import streamlit as st

    from workbench.app.shell import widgets

    status = job.status
    if getattr(job, "ends_now", False):
        job.status = "done"
    if status == "done":
        st.markdown("The result.")
    else:
        widgets.job_panel(job, "watched")


@pytest.mark.parametrize(("status", "errors"), [("running", []), ("failed", ["A long work: It broke"])])
def test_a_job_that_is_not_done_has_a_panel(status: Status, errors: list[str]) -> None:
    job = Job("somebody", "work", "A long work")
    job.status, job.error = status, "It broke"
    test = AppTest.from_function(page_of_a_job, args=(job,)).run()
    assert not test.exception and not test.markdown
    assert [box.value for box in test.error] == errors
    assert [button.label for button in test.button] == ([] if errors else ["Cancel"])


def test_a_job_that_ends_after_the_page_looked_for_its_result_is_shown() -> None:
    job = Job("somebody", "work", "A long work")
    job.status = "running"
    job.ends_now = True  # type: ignore[attr-defined]
    test = AppTest.from_function(page_of_a_job, args=(job,)).run()
    assert not test.exception and [m.value for m in test.markdown] == ["The result."]


@pytest.mark.parametrize(
    ("message", "words"),
    [("counting", "A long work · counting"), ("a long work", "a long work"), ("", "A long work · Waiting")],
)
def test_a_bar_says_title_and_message_and_nothing_twice(message: str, words: str) -> None:
    job = Job("somebody", "work", "A long work")
    job.status, job.message = "running", message
    test = AppTest.from_function(page_of_a_job, args=(job,)).run()
    (bar,) = test.get("progress")
    assert bar.proto.text.startswith(words) and bar.proto.text.lower().count("a long work") == 1
