"""The load test itself, with few workers: ``tests/support/hub_load.py`` has the large one."""

import pytest

from hub_load import make_parser, run_load


@pytest.mark.slow
def test_20_workers_against_a_real_server(tmp_path):
    words = "--workers 20 --minutes 1 --seconds 0.02 --max-runs 16 --kills 0 --spread 0.1"
    words += " --batch 1 --heartbeat 0.3"
    measured = run_load(make_parser().parse_args(words.split()), tmp_path)
    assert measured["lost"] == measured["twice"] == measured["quarantined"] == 0
    assert measured["runs as one local worker makes them"]
    assert measured["decisions as with one local worker"]
    assert measured["runs that count"] == 16
    assert measured["ended"] is not None
    assert measured["statuses"]["results 200"] > 0
    assert not [name for name in measured["statuses"] if name[-3:] not in ("200", "503")]
