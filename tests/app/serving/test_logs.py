"""The app's log: lines of JSON that may be handed around."""

import json
import logging
import stat
from pathlib import Path

from workbench.app import server


def test_lines_hold_no_ids_and_no_secrets_and_the_files_do_not_grow_for_ever(tmp_path: Path) -> None:
    handler = server.start_log(tmp_path / "home")
    assert handler is not None
    log = logging.getLogger("somebody.else")
    try:
        log.warning("project b539aef82461 at postgresql://ann:hunter2@host/x, token=abc123")
        log.info("not ours, not a warning")
        try:
            raise ValueError("round 6f1c2a9e-0d4b-4c1e-9a55-0a1b2c3d4e5f of run")
        except ValueError:
            log.exception("a job failed")
        file = tmp_path / "home" / "logs" / "workbench.log"
        first, second = map(json.loads, file.read_text().splitlines())
        assert first["level"] == "WARNING" and first["logger"] == "somebody.else"
        assert first["message"] == "project (id) at postgresql://...@host/x, token=..."
        assert second["error"] == "ValueError: round (id) of run" and "test_logs.py:" in second["where"]
        for _ in range(4000):
            log.warning("x" * 1500)
        found = sorted((tmp_path / "home" / "logs").iterdir())
        assert len(found) == 4 and sum(f.stat().st_size for f in found) < 4_100_000
        assert stat.S_IMODE((tmp_path / "home" / "logs").stat().st_mode) == 0o700
    finally:
        logging.getLogger().removeHandler(handler)
        handler.close()


def test_a_home_that_cannot_be_written_costs_the_log_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert server.start_log(tmp_path / "file") is None
