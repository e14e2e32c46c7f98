"""A long race, in small: nothing grows that should not; tests/support/soak.py is the long one."""

import pytest

import soak


@pytest.mark.long
def test_files_threads_and_processes_stay_as_they_are(tmp_path):
    seen, _ = soak.soak(600, tmp_path, seconds=0.0)
    first, last = seen[1], seen[-1]
    assert last.runs > 500
    assert last.files <= first.files  # fewer, if what came before this test is still going
    assert last.threads <= first.threads
    assert last.processes <= first.processes + 2  # a run, and the one that comes next
    assert last.log < 10_000_000
