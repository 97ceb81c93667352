"""The helper that runs a server for other tests."""

import pytest
from serve.served import configured, running


def test_a_server_that_does_not_get_ready_is_an_error_with_its_status_and_log(tmp_path):
    with pytest.raises(RuntimeError) as caught, running(configured(str(tmp_path / "nowhere"))):
        pass
    assert "'failed'" in str(caught.value)
    assert "the server could not start" in str(caught.value)
    assert "InputError" in str(caught.value)
