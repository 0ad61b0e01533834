"""URLs: odd ones are refused, patterns read narrow for allow and wide for deny."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyd.model import Truth
from policyd.urls import OddUrl, UrlPattern, find_urls, host_keys, meant, parse

ODD = [
    "",
    "docs.python.org",
    "/docs/x",
    "mailto:a@b.example",
    "data:text/plain,x",
    "javascript:alert(1)",
    "file:///etc/passwd",
    "https:/evil.example",
    "https:evil.example",
    "https:///evil.example",
    "https://",
    "https://?x",
    "https://evil.example\\@docs.python.org/x",
    "https://docs.python.org\\.evil.example/",
    "https:\\\\docs.python.org/",
    "https://docs.python.org@evil.example/x",
    "https://user:pw@docs.python.org/",
    "https://docs.python.org:443@evil.example/",
    "https://docs.python.org%2eevil.example/",
    "https://docs.python.org%00.evil.example/",
    "https://docs.python.org./",
    "https://docs..python.org/",
    "https://.python.org/",
    "https://-x.example/",
    "https://2130706433/",
    "https://0x7f.1/",
    "https://0x7f000001/",
    "https://127.1/",
    "https://0177.0.0.1/",
    "https://127.0.0.1.2/",
    "https://256.0.0.1/",
    "https://1.2.3.4.0x5/",
    "https://[::1/",
    "https://[::1]x/",
    "https://[::ffff:127.0.0.1]/",
    "https://[fe80::1%25eth0]/",
    "https://[x]/",
    "https://x.example:/",
    "https://x.example:80x/",
    "https://x.example:-1/",
    "https://x.example:0/",
    "https://x.example:99999/",
    "https://x.example:١/",
    " https://x.example/",
    "https://x.example/ ",
    "https://x.example/a b",
    "https://x.example/a\tb",
    "https://exa\nmple.com/",
    "https://x.example/\x00",
    "https://x.example/\u202e",
    "https://x.example/\u200b",
    "https://x.example/\u3000",
    "https://x.example/\ud800",
    "https://docs\u3002python.org/",
    "https://\uff44ocs.python.org/",
    "https://stra\u00dfe.example/",
    "https://a\u200db.example/",
    "https://" + "a" * 64 + ".example/",
    "https://" + "a." * 140 + "example/",
    "ht tp://x.example/",
    "1http://x.example/",
    "https://x.example/" + "a" * 70_000,
]


MEANT = [
    ("https://user:pw@x.example:81/a?b", "https://x.example:81/a?b"),
    ("https://docs.example@x.example/", "https://x.example/"),
    ("https://x.example\\a", "https://x.example/a"),
    ("https:x.example/a", "https://x.example/a"),
    ("https:///x.example/a", "https://x.example/a"),
    ("https://x%2eexample/", "https://x.example/"),
    ("https://x\u3002example/", "https://x.example/"),
    ("https://\uff58.example./", "https://x.example/"),
    (" https://x.ex\nample/", "https://x.example/"),
    ("http://2130706433/", "http://127.0.0.1/"),
    ("http://0x7f.1/", "http://127.0.0.1/"),
    ("http://0177.0.0.1/", "http://127.0.0.1/"),
    ("http://[::ffff:127.0.0.1]/", "http://127.0.0.1/"),
    ("http://0x/", None),
    ("x.example", None),
    ("https://", None),
    ("http://" + "9" * 9_000, None),
]


@pytest.mark.parametrize(("text", "meaning"), MEANT)
def test_an_odd_url_is_suspected_to_lead_where_lenient_readers_take_it(text: str, meaning: str | None) -> None:
    found = meant(text)
    assert (found.text if found else None) == meaning


@pytest.mark.parametrize("text", ODD)
def test_a_url_that_two_readers_may_take_for_two_is_refused(text: str) -> None:
    with pytest.raises(OddUrl) as caught:
        parse(text)
    assert str(caught.value)


READ = [
    ("https://Docs.Python.ORG", "https", "docs.python.org", 443, ("/",)),
    ("HTTP://x.example:8080/a?q=1#f", "http", "x.example", 8080, ("/a",)),
    ("https://x.example?q", "https", "x.example", 443, ("/",)),
    ("https://x.example#/../admin", "https", "x.example", 443, ("/",)),
    ("http://127.0.0.1/", "http", "127.0.0.1", 80, ("/",)),
    ("http://[2001:DB8:0::1]:81/", "http", "[2001:db8::1]", 81, ("/",)),
    ("https://münchen.example/", "https", "xn--mnchen-3ya.example", 443, ("/",)),
    ("https://x.example/a/../b", "https", "x.example", 443, ("/b",)),
    ("https://x.example/a/./b/..", "https", "x.example", 443, ("/a/",)),
    ("https://x.example/../../b", "https", "x.example", 443, ("/b",)),
    ("https://x.example/a/%2e%2E/b", "https", "x.example", 443, ("/a/%2e%2E/b", "/b")),
    ("https://x.example/a/%252e%252e/b", "https", "x.example", 443, ("/a/%252e%252e/b", "/a/%2e%2e/b", "/b")),
    ("https://x.example/a%3fb", "https", "x.example", 443, ("/a%3fb", "/a?b", "/a")),
    ("https://x.example//a//b", "https", "x.example", 443, ("//a//b", "/a/b")),
    ("https://x.example/a;v=1/b", "https", "x.example", 443, ("/a;v=1/b", "/a/b")),
    ("foo://x.example/", "foo", "x.example", 0, ("/",)),
    ("http://localhost:3000/", "http", "localhost", 3000, ("/",)),
    ("http://my_host/", "http", "my_host", 80, ("/",)),
]


@pytest.mark.parametrize(("text", "scheme", "host", "port", "paths"), READ)
def test_a_plain_url_is_taken_apart(text: str, scheme: str, host: str, port: int, paths: tuple[str, ...]) -> None:
    url = parse(text)
    assert (url.scheme, url.host, url.port, url.paths) == (scheme, host, port, paths)
    assert url.text == text


# pattern, URL, surely, widely
MATCHES = [
    ("docs.python.org", "https://docs.python.org/3/x?y", True, True),
    ("docs.python.org", "http://docs.python.org/", False, True),
    ("docs.python.org", "https://docs.python.org:8443/", False, True),
    ("docs.python.org", "https://a.docs.python.org/", False, False),
    ("docs.python.org", "https://evildocs.python.org/", False, False),
    ("Docs.Python.ORG", "https://docs.python.org/", True, True),
    ("https://docs.python.org/**", "https://docs.python.org/a/b", True, True),
    ("https://docs.python.org/**", "https://docs.python.org/", True, True),
    ("https://docs.python.org/3/**", "https://docs.python.org/3", True, True),
    ("https://docs.python.org/3/**", "https://docs.python.org/3/../admin", False, False),
    ("https://docs.python.org/3/**", "https://docs.python.org/3/%2e%2e/admin", False, True),
    ("https://docs.python.org/3/*", "https://docs.python.org/3/a", True, True),
    ("https://docs.python.org/3/*", "https://docs.python.org/3/a/b", False, True),
    ("https://docs.python.org/3/*.html", "https://docs.python.org/3/a.html", True, True),
    ("https://docs.python.org/**/x", "https://docs.python.org/a/b/x", True, True),
    ("https://example.com/", "https://example.com/", True, True),
    ("https://example.com/", "https://example.com/users/index", False, True),
    ("https://api.example.com/admin", "https://api.example.com/foo/%2e%2e/admin", False, True),
    ("https://api.example.com/admin", "https://api.example.com/admin;x=1/y", False, True),
    ("https://api.example.com/admin", "https://api.example.com//admin", False, True),
    ("https://api.example.com/admin", "https://api.example.com/%61dmin", False, True),
    ("https://api.example.com/admin", "https://api.example.com/administrator", False, False),
    ("*.example.com", "https://a.example.com/", True, True),
    ("*.example.com", "https://a.b.example.com/x", True, True),
    ("*.example.com", "https://example.com/", False, False),
    ("*.example.com", "https://evilexample.com/", False, False),
    ("*.weather.example", "https://evilweather.example/x", False, False),
    ("*", "https://any.example/x", True, True),
    ("*", "http://any.example/x", False, True),
    ("https://*", "https://any.example/x", True, True),
    ("http://*", "http://any.example/x", True, True),
    ("http://*", "https://any.example/x", False, False),
    ("http://x.example", "https://x.example/", False, True),
    ("*://x.example", "http://x.example/", True, True),
    ("*://*", "ftp://x.example/", True, True),
    ("*://x.example", "http://x.example:81/", False, True),
    ("x.example:8443", "https://x.example:8443/", True, True),
    ("x.example:8443", "https://x.example/", False, False),
    ("http://localhost:*", "http://localhost:3000/x", True, True),
    ("http://localhost:*/**", "http://localhost/", True, True),
    ("http://localhost:*", "https://localhost:3000/", False, True),
    ("http://localhost:*", "http://localhost.evil.example:3000/", False, False),
    ("*.x.example:*", "https://a.x.example:8443/", True, True),
    ("https://*:*", "https://a.example:8443/", True, True),
    ("http://[::1]:*/api/**", "http://[::1]:9/api/x", True, True),
    ("http://localhost:*/api", "http://localhost:9/x", False, False),
    ("https://x.example/s?q=*", "https://x.example/s?q=a&b=/c", True, True),
    ("https://x.example/s?q=1", "https://x.example/s?q=2", False, False),
    ("https://x.example/s?", "https://x.example/s", True, True),
    ("https://x.example/s?", "https://x.example/s?q", False, False),
    ("https://[::1]/", "https://[0:0::1]/", True, True),
    ("http://127.0.0.1", "http://127.0.0.1/x", True, True),
    ("https://x.example/a%20b/**", "https://x.example/a%20b/c", True, True),
    ("https://x.example/a+(b)", "https://x.example/a+(b)", True, True),
]


@pytest.mark.parametrize(("pattern", "text", "surely", "widely"), MATCHES)
def test_a_pattern_reads_narrow_for_allow_and_wide_for_deny(
    pattern: str, text: str, surely: bool, widely: bool
) -> None:
    compiled, url = UrlPattern.compile(pattern), parse(text)
    assert compiled.sure(url) is surely
    assert compiled.maybe(url, widen=True) is (Truth.YES if widely else Truth.NO)
    assert not surely or compiled.maybe(url, widen=False) is Truth.YES
    assert not widely or compiled.hosts & set(host_keys(url.host))


@pytest.mark.parametrize("pattern", ["x.example", "https://x.example/a", "*.example", "*", "http://*"])
@pytest.mark.parametrize("text", ["unknown://anywhere/", "unknown://x.example/"])
def test_a_url_that_is_not_known_is_never_allowed_and_may_be_denied(pattern: str, text: str) -> None:
    compiled, url = UrlPattern.compile(pattern), parse(text)
    assert not compiled.sure(url)
    assert compiled.maybe(url, widen=True) is compiled.maybe(url, widen=False) is Truth.MAYBE


def test_of_a_url_whose_host_is_known_only_rules_on_that_host_may_hold() -> None:
    assert UrlPattern.compile("y.example").maybe(parse("unknown://x.example/"), widen=True) is Truth.NO


def test_inside_unless_nothing_is_widened() -> None:
    pattern = UrlPattern.compile("https://x.example/a")
    assert pattern.maybe(parse("https://x.example/a/b"), widen=False) is Truth.NO
    assert pattern.maybe(parse("http://x.example/a"), widen=False) is Truth.NO
    assert pattern.maybe(parse("https://x.example:81/a"), widen=False) is Truth.NO
    assert pattern.maybe(parse("https://x.example/%61"), widen=False) is Truth.YES


REFUSED = [
    ("", "empty"),
    ("a b", "blank"),
    ("https://x.example\\y", "backslash"),
    ("!x.example", "unless"),
    ("/x/", "host"),
    ("re:x", "host"),
    ("domain:x.example", "x.example"),
    ("https://{a,b}.example", "list"),
    ("https://x.example/[ab]", "list"),
    ("docs-*.example", "*.example.com"),
    ("https://a@x.example", "*.example.com"),
    ("x.example.", "*.example.com"),
    ("0x7f.1", "*.example.com"),
    ("x.example:http", "port"),
    ("x.example:80:*", "every port"),
    ("https://x.example/a#b", "fragment"),
    ("h*://x.example", "https"),
    ("**.x.example", "*.example.com"),
]


@pytest.mark.parametrize(("pattern", "advice"), REFUSED)
def test_a_foreign_pattern_is_an_error_that_says_what_to_write(pattern: str, advice: str) -> None:
    with pytest.raises(ValueError, match=re.escape(advice)):
        UrlPattern.compile(pattern)


PROSE = [
    ("see https://a.example/x.", ("https://a.example/x",)),
    ("(https://a.example/b_(c)), <http://d.example>; `ftp://e.example/f`", None),
    ("nothing here", ()),
    ("://x", ()),
    ("x://", ()),
    ("twice https://a.example https://a.example", ("https://a.example",)),
    ("[t](https://a.example/p)!", ("https://a.example/p",)),
    ("curl -d@f https://a.example/?q=1,2", ("https://a.example/?q=1,2",)),
]


@pytest.mark.parametrize(("prose", "urls"), PROSE)
def test_urls_are_found_in_prose(prose: str, urls: tuple[str, ...] | None) -> None:
    expected = ("https://a.example/b_(c)", "http://d.example", "ftp://e.example/f") if urls is None else urls
    assert tuple(find_urls(prose)) == expected


def test_prose_of_any_shape_is_read_in_linear_time() -> None:
    for prose in (
        "a" * 500_000,
        "a://" * 100_000,
        "://" * 200_000,
        "https://" + ")" * 100_000,
        "x+" * 200_000 + "://a",
    ):
        assert len(list(find_urls(prose))) < len(prose)


TEXTS = st.text(alphabet="ahtps:/.@\\%2e0x[]?#é\u202e-_~;", max_size=40)


@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_any_text_is_a_url_with_a_plain_host_or_refused(rest: str) -> None:
    try:
        url = parse("https://" + rest)
    except OddUrl:
        return
    assert url.host.isascii()
    assert not set(url.host) & set("@\\%/?# ")
    assert all(path.startswith("/") and "/../" not in path for path in url.paths)
    assert parse(f"https://{url.host}/").host == url.host
