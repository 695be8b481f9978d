"""A project that is deleted, or a question that is renamed, while somebody is asked."""

from contextlib import AbstractContextManager
from typing import Any

import pytest

from tests.sessions.several import begun
from workbench.errors import InputError
from workbench.sessions import open_session
from workbench.sessions.project import OpenProject


@pytest.mark.parametrize("questions", [["fraud"], ["fraud", "urgent"]])
def test_who_asks_of_a_project_that_was_deleted_is_told_so(store, monkeypatch, questions):
    session = begun(store, questions)
    assert session.ask(2)
    store.delete_project(session.id)
    monkeypatch.setattr(open_session, "LOOK", 0.0)
    for ask in (session.ask, session.queue.items):
        with pytest.raises(InputError, match="There is no project"):
            ask(3)


@pytest.mark.parametrize("questions", [["fraud"], ["fraud", "urgent"]])
def test_a_question_that_is_renamed_while_it_is_asked_is_asked_all_the_same(store, monkeypatch, questions):
    session = begun(store, questions)
    plain, names = OpenProject.together, ["scam", "swindle"]

    def together(self: OpenProject) -> AbstractContextManager[Any]:
        if names and not self.is_writing:
            session.questions.rename(session.question_name, names.pop())
        return plain(self)

    monkeypatch.setattr(OpenProject, "together", together)
    [ask] = session.ask()
    [item] = session.as_annotator("bob").queue.items()
    assert not names and session.question_name == "scam"
    assert [*session.state.waiting] == ["ann", "bob"] and session.tell(ask, "yes")
    assert len(item.asks) == len(questions)
