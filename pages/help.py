"""Help: the pages of the documentation, without the network."""

import streamlit as st

from workbench.app.shell import frame, widgets
from workbench.app.words import help
from workbench.app.words.text import explain, plural, verbatim
from workbench.errors import InputError

ICON = ":material/article:"


def contents(words: str) -> None:
    """Every page, or those that have the words."""
    if not words:
        for group, pages in help.pages().items():
            st.caption(group)
            for page in pages:
                frame.link("help", page.title, ICON, page=page.name)
        return
    hits = help.found(words)
    with st.container(key="help-hits"):
        st.caption(
            f"{plural(len(hits), 'page has', 'pages have')} these words."
            if hits
            else "No page has these words."
        )
        for page in hits:
            frame.link("help", page.title, ICON, page=page.name)


def body() -> None:
    name = str(st.query_params.get("page", help.FIRST))
    try:
        page = help.read(name)
    except InputError as error:
        st.warning(verbatim(error))
        page = help.read(help.FIRST)
    st.header(page.title, anchor=False)
    st.markdown(page.text)


title, find = st.columns([5, 2], gap="large", vertical_alignment="bottom")
title.title("Help", help=explain("pool", "policy"))
words = find.text_input("Find", key="help-words", placeholder="Words, in any order").strip()
# on a phone the columns stand one below the other: what was asked for comes first
text, beside = st.columns([5, 2], gap="large")
# a link within a sentence is told by more than its colour
widgets.style(
    ".st-key-help-text p a, .st-key-help-text li a, .st-key-help-text td a { text-decoration: underline; }"
    # a long title takes two lines
    ".st-key-help-contents a { height: auto; } .st-key-help-contents a p { white-space: normal; }"
    "@media (max-width: 640px) { [data-testid=stColumn]:has(.st-key-help-hits) { order: -1; } }"
)
with text, st.container(key="help-text"):
    body()
with beside, st.container(key="help-contents"):
    contents(words)
