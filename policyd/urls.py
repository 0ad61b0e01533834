"""URLs: parsed so that no two parsers can disagree on the host, and the patterns that match them.

Rules of this module:

1. A URL that two parsers may interpret differently is refused (`OddUrl`), never repaired: backslash, blank, control or
   format character, user info, percent or odd numbers in the host, trailing dot, a port that is no number.
2. A path has every spelling a server may take it for: dot segments folded before and after percent-decoding, once or
   twice, cut at a `?`, `#` or NUL that was encoded, without `;parameters`, with doubled slashes as one. Allow wants all
   of them to match, deny any.
3. A bare host means https on its default port with all paths. Read widely (deny and ask rules), a pattern holds for
   any scheme and, unless it names one, any port, and for all below its path; only a pattern for every host (`http://*`)
   keeps its scheme, for it says nothing else. The port `*` is every port.
4. Of a URL of the scheme `unknown` no more is known than its host, of one to `ANYWHERE` not even that: allow never
   holds, deny may.
5. `*` in a path stays within a segment, `**` crosses them; a path that ends in `/**` also covers what is in front of
   it. In a query `*` crosses everything; a pattern without a query takes any.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator

from msgspec import Struct
from msgspec.structs import force_setattr

from policyd.model import Truth, Url

PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21, "ssh": 22, "git": 9418}
UNKNOWN, ANYWHERE = "unknown", "anywhere"
ANY_PORT = 0
Matcher = Callable[[str], bool]
LONGEST = 65_536
"""Characters of a URL that are read."""
LONGEST_SCHEME = 31
NESTED = 16
"""URLs inside a URL that are found."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}\Z")
_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)\Z")
_NUMBER = re.compile(r"([0-9]+|0[xX][0-9a-fA-F]*)\Z")
_QUAD = re.compile(r"((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])(\.(?!\Z)|\Z)){4}\Z")
_ESCAPES = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_ENDS = re.compile(r"[?#\0]")
_PARAMETERS = re.compile(r";[^/]*")
_SLASHES = re.compile(r"//+")
_BLANKS = re.compile(r"[\s\x00-\x1f\u200b-\u200f\u2028-\u202e\u2060\ufeff]")
_LOOSELY = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,30}):/*([^/?#]+)(.*)", re.DOTALL)
_PORT = re.compile(r":[0-9]+\Z")
_BETWEEN = re.compile(r"[\s<>\"'`\\^{|}]")


class OddUrl(ValueError):  # noqa: N818 - odd is what it is, whoever wrote it
    """A URL that two parsers may interpret differently; the message is the reason in words."""


# ---- taking apart ----------------------------------------------------------------------------------


def parse(text: str) -> Url:
    """Parse an absolute URL and normalise it.

    Raises:
        OddUrl: it is no absolute URL of a host, or an odd one.
    """
    if len(text) > LONGEST:
        raise OddUrl(f"the URL is longer than {LONGEST} characters")
    if "\\" in text or any(_hidden(char) for char in text):
        raise OddUrl("the URL holds a backslash, blank, control or invisible character")
    scheme, mark, rest = text.partition("://")
    if not mark or not _SCHEME.match(scheme):
        raise OddUrl("the text is no absolute URL")
    scheme = scheme.lower()
    end = next((i for i, char in enumerate(rest) if char in "/?#"), len(rest))
    host, port = _authority(rest[:end])
    path, _, query = rest[end:].partition("#")[0].partition("?")
    return Url(text, scheme, host, PORTS.get(scheme, 0) if port is None else port, _paths(path or "/"), query)


def _hidden(char: str) -> bool:
    return not ("!" <= char <= "~") and (char <= " " or unicodedata.category(char)[0] in "CZ")


def _authority(text: str) -> tuple[str, int | None]:
    if "@" in text:
        raise OddUrl("the URL names a user in front of the host")
    if text.startswith("["):
        end = text.find("]")
        host, rest = _address(text[1:end] if end > 0 else ""), text[end + 1 :]
    else:
        name, colon, number = text.partition(":")
        host, rest = _host(name), colon + number
    return host, _port(rest)


def _port(text: str) -> int | None:
    if not text:
        return None
    number = text[1:]
    if text[0] != ":" or not (number.isascii() and number.isdigit()) or not 0 < int(number[:6]) <= 65_535:
        raise OddUrl("the port is no number")
    return int(number[:6])


def _address(text: str) -> str:
    """The canonical spelling of an IPv6 address, in brackets."""
    import ipaddress

    try:
        address = ipaddress.IPv6Address(text)
    except ValueError as error:
        raise OddUrl("the bracketed host is no IPv6 address") from error
    if address.ipv4_mapped or address.scope_id:
        raise OddUrl("the bracketed host is an IPv4 address or names an interface")
    return f"[{address.compressed}]"


def meant(text: str) -> Url | None:
    """Return where an odd URL most likely leads, None where nobody can say. For strict rules only.

    Blanks and what stands before an `@` are left out; the host is percent-decoded, in plain letters, and the address
    that a number stands for.
    """
    found = _LOOSELY.fullmatch(_BLANKS.sub("", text[:LONGEST]).replace("\\", "/"))
    if found is None:
        return None
    scheme, authority, rest = found.groups()
    name = unicodedata.normalize("NFKC", _decoded(authority.rpartition("@")[2])).replace("\u3002", ".")
    host, port = _PORT.sub("", name).rstrip("."), _PORT.search(name)
    try:
        return parse(f"{scheme}://{_address_of(host) or host}{port[0] if port else ''}{rest}")
    except OddUrl:
        return None


def _address_of(host: str) -> str:
    """Return the dotted quad that a C library reads in numbers, or in an IPv6 address; empty for a name."""
    import ipaddress

    try:
        if host.startswith("["):
            return str(ipaddress.IPv6Address(host.strip("[]")).ipv4_mapped or "")
        *first, last = [int(part, _base(part)) for part in host.split(".")]
        return str(ipaddress.IPv4Address(sum(each << (24 - 8 * at) for at, each in enumerate(first[:3])) + last))
    except (ValueError, IndexError):
        return ""


def _base(number: str) -> int:
    return 16 if number[:2].lower() == "0x" else 8 if number[:1] == "0" and number != "0" else 10


def _host(text: str) -> str:
    """A host name in lower case and ASCII, or a dotted quad."""
    if not text:
        raise OddUrl("the URL names no host")
    if len(text) > 253 or text.endswith("."):
        raise OddUrl("the host ends in a dot or is too long")
    labels = [_label(label) for label in text.split(".")]
    host = ".".join(labels)
    if _NUMBER.match(labels[-1]) and not _QUAD.match(host):
        raise OddUrl("the host is an odd number")
    return host


def _label(text: str) -> str:
    lower = text.lower()
    if not lower.isascii():
        lower = _punycode(lower)
    if not _NAME.match(lower):
        raise OddUrl("the host holds a percent sign, an empty label or another odd character")
    return lower


def _punycode(label: str) -> str:
    """IDNA of a label that all versions of IDNA read alike."""
    plain = all(unicodedata.category(char)[0] in "LMN" or char == "-" for char in label)
    if not plain or unicodedata.normalize("NFKC", label) != label or any(char in "ßς" for char in label):
        raise OddUrl("the host holds a character that is read in several ways")
    return "xn--" + label.encode("punycode").decode("ascii")


# ---- spellings of a path ---------------------------------------------------------------------------


def _paths(path: str) -> tuple[str, ...]:
    if "%" not in path and ";" not in path and "//" not in path:
        return (_fold(path),)
    spellings: dict[str, None] = {}
    once = _decoded(path)
    for each in dict.fromkeys((path, once, _decoded(once), _ENDS.split(_decoded(once), maxsplit=1)[0])):
        for form in (each, _PARAMETERS.sub("", each), _SLASHES.sub("/", each)):
            spellings[_fold(form)] = None
    return tuple(spellings)


def _decoded(text: str) -> str:
    return _ESCAPES.sub(lambda found: bytes.fromhex(found[0].replace("%", "")).decode("utf-8", "replace"), text)


def _fold(path: str) -> str:
    """Fold dot segments; empty segments and a trailing slash stay."""
    if "/." not in path:
        return path or "/"
    names: list[str] = []
    parts = path.split("/")[1:]
    for part in parts:
        if part == "..":
            del names[-1:]
        elif part != ".":
            names.append(part)
    slash = "/" if parts[-1] in {".", ".."} and names else ""
    return "/" + "/".join(names) + slash


# ---- in prose --------------------------------------------------------------------------------------


def find_urls(prose: str) -> Iterator[str]:
    """Yield the texts in `prose` that look like URLs, each once, in linear time; they serve deny and ask only.

    A run of characters without blank or quote holds the URL it begins with and at most `NESTED` in its query.
    """
    seen: set[str] = set()
    before, here = 0, prose.find("://")
    while here >= 0:
        blank = _BETWEEN.search(prose, here)
        end = blank.start() if blank else len(prose)
        for url in _found(prose[max(before, here - LONGEST_SCHEME) : end]):
            if url not in seen:
                seen.add(url)
                yield url
        before, here = end, prose.find("://", end)


def _found(run: str) -> Iterator[str]:
    end = _end(run)
    here = run.find("://", 0, end)
    for _ in range(NESTED + 1):
        if here < 0:
            return
        start = here
        while start and here - start < LONGEST_SCHEME and (run[start - 1].isalnum() or run[start - 1] in "+.-"):
            start -= 1
        if start < here < end - 3:
            yield run[start:end]
        here = run.find("://", here + 3, end)


def _end(run: str) -> int:
    """Where a run ends without the punctuation of the sentence around it; a closing bracket may belong to it."""
    end = len(run)
    first = run.find("://")
    surplus = run.count(")", first) - run.count("(", first)
    while end and (run[end - 1] in ".,;:!?]*_" or (run[end - 1] == ")" and surplus > 0)):
        surplus -= run[end - 1] == ")"
        end -= 1
    return end


# ---- patterns --------------------------------------------------------------------------------------


class UrlPattern(Struct, frozen=True):
    """A URL pattern, ready to be judged."""

    source: str
    scheme: str
    """`*` for any; `https` where none is written."""
    host: str
    """A host, `.example.com` for all below it, or `*` for all."""
    port: int | None
    path: str
    """Empty for all."""
    query: str | None
    covers: Matcher = bool
    reaches: Matcher = bool
    asks: Matcher = bool

    def __post_init__(self) -> None:
        """Compile what matches the path, what also lies below it, and what matches the query."""
        force_setattr(self, "covers", _matcher(self.path, below=False))
        force_setattr(self, "reaches", _matcher(self.path, below=True))
        force_setattr(self, "asks", _query(self.query))

    def __eq__(self, other: object) -> bool:
        """Compare what was written; what is made of it follows."""
        return isinstance(other, UrlPattern) and self.source == other.source

    @classmethod
    def compile(cls, text: str) -> UrlPattern:
        """Read a pattern.

        Raises:
            ValueError: it cannot be meant as written; the message says what to write.
        """
        _check(text)
        scheme, rest = text.split("://", 1) if "://" in text else ("https", text)
        if scheme != "*" and not _SCHEME.match(scheme):
            raise ValueError(f"`{text}`: `{scheme}` is no scheme; write `https://…`, or `*://…` for all")
        end = next((i for i, char in enumerate(rest) if char in "/?#"), len(rest))
        path, mark, query = rest[end:].partition("?")
        host, port = _pattern_authority(rest[:end], text)
        return cls(text, scheme.lower(), host, port, _pattern_path(path, text), query if mark else None)

    @property
    def hosts(self) -> frozenset[str]:
        """The keys under which an index files the pattern; `host_keys` gives those of a URL."""
        return frozenset({self.host})

    def sure(self, url: Url) -> bool:
        """Say whether every spelling matches as written."""
        if url.scheme == UNKNOWN or self.scheme not in {"*", url.scheme}:
            return False
        if not self._is_host(url.host) or not self._is_port(url):
            return False
        return self.asks(url.query) and all(map(self.covers, url.paths))

    def maybe(self, url: Url, *, widen: bool) -> Truth:
        """Say whether some spelling matches; `widen` reads the pattern as deny and ask rules do."""
        if url.scheme == UNKNOWN:
            return Truth.MAYBE if url.host == ANYWHERE or self._is_host(url.host) else Truth.NO
        return Truth.YES if self._some(url, widen) else Truth.NO

    def _some(self, url: Url, widen: bool) -> bool:
        if not self._is_host(url.host) or not self.asks(url.query):
            return False
        says_scheme = self.host == "*" and "://" in self.source
        if self.scheme not in {"*", url.scheme} and (says_scheme or not widen):
            return False
        if not self._is_port(url) and (self.port is not None or not widen):
            return False
        return any(map(self.reaches if widen else self.covers, url.paths))

    def _is_port(self, url: Url) -> bool:
        return self.port == ANY_PORT or url.port == (PORTS.get(url.scheme, 0) if self.port is None else self.port)

    def _is_host(self, host: str) -> bool:
        return self.host in {"*", host} or (self.host[0] == "." and host.endswith(self.host))


def host_keys(host: str) -> tuple[str, ...]:
    """Return every `UrlPattern.host` that may match `host`."""
    labels = host.split(".")
    above = ("." + ".".join(labels[i:]) for i in range(1, len(labels)))
    return (host, *above, "*")


def _check(text: str) -> None:
    if not text.strip():
        raise ValueError("the URL pattern is empty; write `https://*` for every host")
    if "\\" in text or any(_hidden(char) for char in text):
        raise ValueError(f"`{text}`: a URL pattern holds no backslash, blank or invisible character; write `%20`")
    if text.startswith(("!", "re:", "/", "^")):
        raise ValueError(f"`{text}`: write a host or a URL; exceptions go under `unless`")
    if text.startswith("domain:"):
        raise ValueError(f"`{text}`: write the host alone: `{text[7:]}`")
    if any(char in "{}[" for char in text.partition("://")[2] or text) and "[" not in _authority_text(text):
        raise ValueError(f"`{text}`: braces and classes are not known in a URL; write a list")


def _authority_text(text: str) -> str:
    return re.split(r"[/?#]", text.partition("://")[2] or text, maxsplit=1)[0]


def _pattern_authority(text: str, source: str) -> tuple[str, int | None]:
    text, every = text.removesuffix(":*"), ANY_PORT if text.endswith(":*") else None
    try:
        if text in {"*", "**"}:
            return "*", every
        below = text.startswith("*.")
        name, port = _authority("x." + text[2:] if below else text)
    except OddUrl as error:
        raise ValueError(f"`{source}`: {error}; write a host, `*.example.com` for all below it, or `*`") from error
    if port is not None and every is not None:
        raise ValueError(f"`{source}`: it names two ports; write one of them, or `:*` for every port")
    return name[1:] if below else name, every if port is None else port


def _pattern_path(path: str, source: str) -> str:
    """The path of a pattern, empty for all."""
    if "#" in path:
        raise ValueError(f"`{source}`: a fragment never reaches a server; leave it out")
    if path.strip("/") == "**":
        return ""
    return path


def _matcher(path: str, *, below: bool) -> Matcher:
    """Match a whole path in linear time, as written or percent-decoded; `below`: also everything beneath it."""
    if not path:
        return lambda text: True
    spellings = dict.fromkeys((path, _decoded(path)))
    if "*" not in path and not below:
        return spellings.__contains__
    return _whole("|".join(_expression(each, below=below) for each in spellings))


def _expression(path: str, *, below: bool) -> str:
    tree = below or path.endswith("/**")
    path = path.removesuffix("/**").rstrip("/") if tree else path
    words = ("[^/]*".join(map(re.escape, word.split("*"))) for word in path.split("**"))
    return ".*".join(words) + ("(?:/.*)?" if tree else "")


def _query(pattern: str | None) -> Matcher:
    """Match a whole query; `*` crosses everything."""
    if pattern is None:
        return lambda text: True
    return _whole(".*".join(map(re.escape, pattern.split("*"))))


def _whole(expression: str) -> Matcher:
    """Compile where a pattern needs it: a policy without URLs does not pay for the library."""
    import re2

    compiled = re2.compile(f"(?s){expression}")
    return lambda text: compiled.fullmatch(text) is not None
