"""Adversarial: attack an image model, and see whether its uncertainty notices."""

import streamlit as st

from workbench.app.access import current
from workbench.app.compare import attack_form, attack_results
from workbench.app.shell import widgets
from workbench.app.words.text import explain

st.title("Adversarial", help=explain("detector", "AUC", "strength"))
st.markdown(
    "Small changes of the pixels, chosen to mislead, turn right answers into wrong ones. See how well the "
    "model notices that a picture was tampered with."
)
token = current.shown(attack_form.PARAMETER)
job = attack_form.job_of(token) if token is not None else None
if token is not None and job is None:
    current.show(attack_form.PARAMETER, None)
    st.info(
        "That experiment is gone: results live as long as the server. Start it again.", icon=":material/info:"
    )
if job is not None and (job.active or job.status in ("failed", "cancelled")):
    widgets.job_panel(job, "attack-job")
if job is not None and job.status == "done":
    with st.container(horizontal=True, horizontal_alignment="right"):
        if st.button("New attack", key="new-attack", type="tertiary", icon=":material/add:"):
            current.show(attack_form.PARAMETER, None)
            st.rerun()
    attack_results.shown(job.result)
elif job is None or not job.active:
    attack_form.form()
    attack_results.drawn_example()
