import pytest
from hopfuse.errors import InputError
from hopfuse.serve import ServeConfig

ONE = '[indexes.wiki]\npath = "there"\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("port = ", "not valid TOML"),
        ("", "missing required field `indexes`"),
        ("[indexes]\n", "no index"),
        (ONE + "paths = 1\n", "wrong at `indexes.wiki`: object contains unknown field `paths`; allowed: path, recipe"),
        ("port = 70000\n" + ONE, "`port`"),
        ("port = true\n" + ONE, "`port`"),
        (ONE + "[limits]\nk = 0\n", "`limits.k`"),
        (ONE + "[limits]\nbatch = 5000\n", "`limits.batch`"),
        (ONE + "[limits]\ntimeout_ms = 70000\n", "above max_timeout_ms"),
        ("prot = 1\n" + ONE, "wrong: object contains unknown field `prot`; allowed: indexes, host, port"),
        (
            ONE + "[limits]\nspeed = 1\n",
            "wrong at `limits`: object contains unknown field `speed`; allowed: body",
        ),
        ('[indexes."a b"]\npath = "x"\n', "a name 'a b' in indexes; a name has 1 to 64 of A-Z"),
        ('host = "0.0.0.0"\n' + ONE, "others can reach"),
        (
            ONE + f'[keys.a]\nsha256 = "{"0" * 64}"\n[keys.b]\nsha256 = "{"0" * 64}"\nrights = ["reed"]\n',
            "wrong at `keys.b.rights[0]`: invalid enum value 'reed'; allowed: read, write, admin",
        ),
        (ONE + '[log]\nformat = "xml"\n', "wrong at `log.format`: invalid enum value 'xml'; allowed: plain, json"),
    ],
)
def test_a_wrong_configuration_is_refused_by_key(text, says):
    with pytest.raises(InputError, match=r"configuration|host") as refused:
        ServeConfig.read(text)
    assert says in str(refused.value)


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
        with pytest.raises(InputError, match=r"prefix is .* which begins with"):
            read(one="x", other="y")


def test_a_file_is_read_relative_to_its_folder(tmp_path):
    (tmp_path / "serve.toml").write_text(ONE)
    config = ServeConfig.load(tmp_path / "serve.toml", {"port": 1234})
    assert config.indexes["wiki"].path == str(tmp_path / "there")
    assert config.port == 1234
    with pytest.raises(InputError, match=r"the configuration: there is no file .*none\.toml"):
        ServeConfig.load(tmp_path / "none.toml")
    (tmp_path / "serve.toml").write_text("port = 0")
    with pytest.raises(InputError, match=r"serve\.toml: the configuration is wrong"):
        ServeConfig.load(tmp_path / "serve.toml")


def test_a_public_host_without_keys_is_to_be_said_twice():
    config = ServeConfig.read('host = "0.0.0.0"\npublic = true\n' + ONE)
    config.check_public(True)
    with pytest.raises(InputError, match="--public"):
        config.check_public(False)
