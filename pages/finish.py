"""Finish: what the machine labels, what that is worth, and the checks that say so."""

import streamlit as st

from workbench.app import desk
from workbench.app.access import current
from workbench.app.finish import certificate_plan, finishing
from workbench.app.shell import frame

session = current.mine(frame.needed("finish it", "Finish", example="answers"))
current.keep_fitting(session)
now = session.checks.state()
shown = "start" if now is None or st.session_state.get(certificate_plan.ANEW) else now.phase
if shown in ("certified", "failed") and st.session_state.get(certificate_plan.ON):
    shown = "checking"
st.session_state[frame.DESK] = "finish" if shown == "checking" else ""
st.title("Finish")
if now is not None and shown == "start":
    st.button(
        "Back to the checks", icon=":material/arrow_back:", key="finish-back", on_click=finishing.stop_here
    )
if shown == "start" or now is None:
    certificate_plan.start(session)
elif shown == "checking":
    desk.mount(session, checks=now.phase, on=bool(st.session_state.get(certificate_plan.ON)))
    finishing.promise_line(now)
    with st.container(horizontal=True, key="finish-checking-steps"):
        if now.phase != "checking":
            st.button("Enough", icon=":material/done:", key="finish-enough", on_click=finishing.stop_here)
        st.button("Another promise", key="finish-again", on_click=finishing.anew)
elif shown == "failed":
    finishing.failed(session, now)
elif shown == "certified":
    finishing.certified(session, now)
else:
    finishing.void(session, now)
    certificate_plan.start(session)
