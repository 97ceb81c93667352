import pytest
from hopfuse.errors import InputError
from hopfuse.serve import ServeConfig
from refusals import refused

ONE = '[indexes.wiki]\npath = "there"\n'


@pytest.mark.parametrize(
    ("text", "code", "field"),
    [
        ("port = ", "syntax", "config"),
        ("", "missing", "indexes"),
        ("[indexes]\n", "empty", "indexes"),
        (ONE + "paths = 1\n", "unknown", "indexes.wiki.paths"),
        ("port = 70000\n" + ONE, "range", "port"),
        ("port = true\n" + ONE, "range", "port"),
        (ONE + "[limits]\nk = 0\n", "range", "limits.k"),
        (ONE + "[limits]\nbatch = 5000\n", "range", "limits.batch"),
        (ONE + "[limits]\nheader_bytes = 10\n", "range", "limits.header_bytes"),
        (ONE + "[limits]\ntimeout_ms = 70000\n", "range", "limits.timeout_ms"),
        ("prot = 1\n" + ONE, "unknown", "prot"),
        (ONE + "[limits]\nspeed = 1\n", "unknown", "limits.speed"),
        ('[indexes."a b"]\npath = "x"\n', "syntax", "indexes"),
        ('host = "0.0.0.0"\n' + ONE, "forbidden", "host"),
        (
            ONE + f'[keys.a]\nsha256 = "{"0" * 64}"\n[keys.b]\nsha256 = "{"0" * 64}"\nrights = ["reed"]\n',
            "choice",
            "keys.b.rights[0]",
        ),
        (ONE + '[log]\nformat = "xml"\n', "choice", "log.format"),
    ],
)
def test_a_wrong_configuration_is_refused_by_key(text, code, field):
    with refused(InputError, code, field):
        ServeConfig.read(text)


@pytest.mark.parametrize(
    ("a", "b", "allowed"),
    [("a/", "b/", True), ("a", "ab", False), ("ab", "a", False), ("a", "a", False), ("", "a", True)],
)
def test_prefixes_of_keys_of_other_filters_do_not_overlap(a, b, allowed):
    def read(**filters):
        lines = (
            f'[keys.{name}]\nsha256 = "{"0" * 64}"\nprefix = "{prefix}"\nfilter = {{ tenant = "{filters[name]}" }}\n'
            for name, prefix in (("one", a), ("other", b))
        )
        return ServeConfig.read(ONE + "".join(lines))

    assert read(one="x", other="x").keys["other"].prefix == b
    if allowed:
        assert read(one="x", other="y").keys["one"].prefix == a
    else:
        with pytest.raises(InputError) as caught:
            read(one="x", other="y")
        assert caught.value.code == "conflict"
        assert caught.value.field in ("keys.one.prefix", "keys.other.prefix")


def test_a_file_is_read_relative_to_its_folder(tmp_path):
    (tmp_path / "serve.toml").write_text(ONE)
    config = ServeConfig.load(tmp_path / "serve.toml", {"port": 1234})
    assert config.indexes["wiki"].path == str(tmp_path / "there")
    assert config.port == 1234
    with refused(InputError, "missing", "config"):
        ServeConfig.load(tmp_path / "none.toml")
    (tmp_path / "serve.toml").write_text("port = 0")
    with refused(InputError, "missing", "indexes") as caught:
        ServeConfig.load(tmp_path / "serve.toml")
    assert caught.value.places == (str(tmp_path / "serve.toml"),)


def test_a_public_host_without_keys_is_to_be_said_twice():
    config = ServeConfig.read('host = "0.0.0.0"\npublic = true\n' + ONE)
    config.check_public(True)
    with refused(InputError, "forbidden", "host"):
        config.check_public(False)


def test_limits_of_a_client_are_divided_by_the_workers():
    config = ServeConfig.read("workers = 3\n" + ONE)
    assert [config.part(limit) for limit in (512, 3, 1)] == [171, 1, 1]
