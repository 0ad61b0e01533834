"""Laws of paths and URLs: only the errors they name, and an allow never reaches further than a deny."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from policyd.model import Reach, Truth
from policyd.paths import OpaquePath, PathIndex, PathPattern, PatternError, open_workspace, ref
from policyd.urls import OddUrl, UrlPattern, find_urls, host_keys, parse
from tests.fakes import FakeFilesystem
from tests.fuzz.law import hold

HOME = "/home/dev"
APP = "/home/dev/app"
FS = FakeFilesystem(
    {APP: None, f"{APP}/a": None, f"{APP}/a/x.py": "", f"{APP}/.env": "", "/etc/passwd": ""},
    {f"{APP}/l": "/etc", f"{APP}/loop": "loop", "/x": APP},
)
NAME = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)*\.[a-z]+")


def check_path(data: bytes) -> None:
    """A pattern and a path, with and without a file system, in every way a path may be written."""
    first, _, rest = data.decode("utf-8", "surrogateescape").partition("\n")
    try:
        pattern = PathPattern.compile(first, home=HOME, tmpdir="/tmp", fs=FS)
    except PatternError:
        pattern = PathPattern.compile("**", home=HOME, tmpdir="/tmp", fs=FS)
    space = open_workspace(APP, (), home=HOME, fs=FS, heads=pattern.heads, fold_case=len(data) % 5 == 0)
    index = PathIndex([(pattern, 1)])
    for glob, uri, reach in ((False, False, Reach.ENTRY), (True, False, Reach.CONTENT), (False, True, Reach.ENTRY)):
        for fs in (FS, None):
            try:
                found = ref(rest, base=(APP,), workspace=space, fs=fs, reach=reach, glob=glob, uri=uri)
            except OpaquePath:
                continue
            sure, wide = pattern.sure(found, space), pattern.maybe(found, space, fs, widen=True)
            hold(not sure or wide is Truth.YES, "an allow matches, a deny of the same text does not", first, rest, wide)
            matched = wide is not Truth.NO
            hold(not matched or 1 in set(index.candidates(found, space)), "the index misses it", first, rest)


def check_url(data: bytes) -> None:
    """A pattern and a URL."""
    first, _, rest = data.decode("utf-8", "surrogateescape").partition("\n")
    list(find_urls(rest))
    try:
        url = parse(rest)
    except OddUrl:
        url = None
    try:
        pattern = UrlPattern.compile(first)
    except ValueError:
        pattern = None
    if url is None:
        return
    host = urlsplit(rest).hostname or ""
    if NAME.fullmatch(host) and "xn--" not in host:
        hold(url.host == host, "another host than others read", rest, url.host)
    if pattern is not None and pattern.sure(url):
        hold(pattern.maybe(url, widen=True) is Truth.YES, "an allow matches, a deny of the same text does not", data)
        hold(pattern.hosts & set(host_keys(url.host)), "the index misses it", data)
