"""The helper that runs a server for other tests."""

import pytest
from serve.served import NotReadyError, configured, running


def test_a_server_that_does_not_get_ready_is_an_error_with_its_status_and_log(tmp_path):
    with pytest.raises(NotReadyError) as caught, running(configured(str(tmp_path / "nowhere"))):
        pass
    assert caught.value.status == "failed"
    assert any("InputError" in line for line in caught.value.log)
