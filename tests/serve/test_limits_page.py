"""docs/operate.md has every limit once, with its default and the status beyond it."""

from __future__ import annotations

from hopfuse.errors import InputError
from hopfuse.serve import Limits, RefusalError, status_of
from serve.limits_page import rows


def test_every_limit_is_in_the_table_with_its_default():
    found, limits = rows(), Limits()
    keys = [row.key for row in found]
    assert len(set(keys)) == len(keys)
    assert set(keys) == set(Limits.__struct_fields__)
    assert {row.key: row.default for row in found} == {key: getattr(limits, key) for key in keys}


def test_the_status_of_each_code_is_the_server_s():
    refusals = {one for row in rows() for one in row.refusals}
    assert {code for status, code in refusals if status == 400} == {"limit", "range"}
    for status, code in refusals:
        error = InputError(code, None, "-") if status == 400 else RefusalError(code, None, "-")
        assert status_of(error) == status, code
