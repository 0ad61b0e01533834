"""Shell texts made at random, of stub programs and harmless builtins only: food for the oracles.

Every program is one of `PROGRAMS` or `TOOLS`, every file a bare name in the scratch directory, every loop ends. The
same seed gives the same text.
"""

from __future__ import annotations

from random import Random

PROGRAMS = ("p1", "p2", "p3", "p4", "rm", "git", "cat", "ls")
TOOLS = ("env", "timeout", "nice", "xargs", "sh", "bash")
_LETTERS = ("a", "b", "x1", "-f", "--out=v", "f.txt", "d/e")
_NAMES = ("v", "w", "LONG", "n1")


class Generator:
    """Makes texts from one random source."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311
        self.depth = 0
        self.documents: list[str] = []
        self.closed = False

    def text(self) -> str:
        """Return one text."""
        self.depth, self.documents = 0, []
        return self._closed(self._list(self.random.randint(1, 3)))

    def _pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    def _maybe(self, chance: float) -> bool:
        return self.random.random() < chance

    def _closed(self, text: str) -> str:
        """End a line with the here-documents it announced."""
        documents, self.documents = self.documents, []
        return text + "".join("\n" + document for document in documents) + ("\n" if documents else "")

    def _list(self, size: int) -> str:
        parts = [self._closed(self._chain())]
        for _ in range(size - 1):
            end = "" if parts[-1].endswith("\n") else self._pick("; ", "\n", " & ", ";", "  # c 'x\n", "\n\n")
            parts.append(end + self._closed(self._chain()))
        return "".join(parts)

    def _chain(self) -> str:
        text = self._pipeline()
        while self._maybe(0.3):
            operator = self._pick(" && ", " || ", "&&", "||", " && \\\n ", " ||\\\n", " &&\n", " || # c\n\n ")
            text = self._closed(text).rstrip("\n") + operator + self._pipeline() if not self.documents else text
            if self.documents:
                break
        return text

    def _pipeline(self) -> str:
        text = ("! " if self._maybe(0.05) else "") + self._command()
        while self._maybe(0.2) and not self.documents:
            text += self._pick(" | ", " |& ", "|", " |\\\n", " |\n ") + self._command()
        return text

    def _command(self) -> str:
        self.depth += 1
        try:
            if self.depth > 3 or self._maybe(0.72):
                return self._simple()
            return self._compound()
        finally:
            self.depth -= 1

    def _inner(self) -> str:
        """Return a list that stands inside something, without here-documents left open."""
        kept, self.documents = self.documents, []
        closed, self.closed = self.closed, False
        text = self._list(self.random.randint(1, 2))
        self.documents, self.closed = kept, closed
        return text

    def _condition(self) -> str:
        """Return a command that leaves no here-document open."""
        kept, self.closed = self.closed, True
        text = self._simple()
        self.closed = kept
        return text

    def _compound(self) -> str:
        inner, other = self._inner(), self._inner()
        ends = [text if text.endswith("\n") else text + "; " for text in (inner, other)]
        ends = [text.replace("&; ", "& ") for text in ends]
        forms = (
            f"({inner})",
            f"{{ {ends[0]}}}",
            f"if {self._condition()}; then {ends[0]}else {ends[1]}fi",
            f"if {self._condition()}\nthen\n{ends[0]}fi",
            f"for v in {self._word()} {self._word()}; do {ends[0]}done",
            f"for v in a 'b c' *.q; do {self._program()} $v \"$v\" x$v; done",
            f"while {self._condition()}; do {ends[0]}break; done",
            f"until {self._condition()}; do {ends[0]}break; done",
            f"case {self._word()} in a|b) {ends[0]};; *) {ends[1]};; esac",
            f"[[ -n {self._quoted()} ]]",
            f"[[ a == {self._quoted()} && ( -f b || ! -d {self._quoted()} ) ]]",
            f"[ -n {self._quoted()} -a b = c ]",
            f'[[ $(p1 {self._word()}) == "$(p2 a)" || -n `p3 z` ]]',
            f"select v in {self._word()} a; do {ends[0]}done",
            f"for v in {self._word()} *.q; do\nif {self._condition()}; then break; fi\n{ends[0]}done",
            f"case {self._word()} in (a) {ends[0]};; b|c) {ends[1]};; esac",
            f"for v in {self._word()}\ndo\n{inner}\ndone",
            f"for v\ndo\n{ends[0]}\ndone",
            f"if {self._condition()}; then {ends[0]}elif {self._condition()}; then {ends[1]}fi",
            f"{{\n{inner}\n}}",
            f"(\n{inner}\n)",
            f"( {inner} )",
            f"function f2 {{ {ends[0]}}}",
            f"while {self._condition()} && {self._condition()}; do {ends[0]}break; done",
            f"time {{ {ends[0]}}}",
            f"f1() {{ {ends[0]}}}; f1 a",
        )
        text = self.random.choice(forms).replace("; ;;", ";;").replace("\n;;", "\n:;;")
        return text + self._redirects()

    def _program(self) -> str:
        name = self.random.choice(PROGRAMS)
        if self._maybe(0.12):
            place = self.random.randint(1, len(name))
            name = name[:place] + self._pick("''", '""', "\\\n") + name[place:]
        if self._maybe(0.06):
            name = self._pick("'{}'", '"{}"', "\\{}", "$'{}'").format(name)
        if self._maybe(0.02):
            name = f"{{{name},a,b}}"
        return name

    def _simple(self) -> str:
        if self._maybe(0.08):
            return self._builtin()
        if self._maybe(0.1):
            return self._tool()
        before = "".join(f"{self._assignment()} " for _ in range(self.random.choice((0, 0, 0, 0, 1, 2))))
        words = [self._program(), *[self._word() for _ in range(self.random.randint(0, 3))]]
        gap = self._pick(" ", " ", " ", "  ", " \\\n", "\t")
        redirects = self._redirects()
        if self._maybe(0.1):
            return before + f"> o{self.random.randint(1, 3)} " + gap.join(words)
        return before + gap.join(words) + redirects

    def _assignment(self) -> str:
        return f"{self.random.choice(_NAMES)}={self._word()}"

    def _builtin(self) -> str:
        return self.random.choice(
            (
                "cd d",
                "cd ..",
                ":",
                "true",
                f"export {self._assignment()}",
                f'export v=$(p1 {self._quoted()}) w="${{v:-$(p2 a)}}"',
                f': "$(cat <<{self._delimiter()}\n{self._message()}E0\n)"',
                self._assignment(),
                f"{self._assignment()} w=$v",
                f"v=({self._word()} {self._word()})",
                "read -r v w",
                f"eval '{self._plain_command()}'",
                f'eval "{self._plain_command()}"',
                f"printf -v w %s {self._word()}",
                "local x",
                "set -e -u",
                f"echo {self._word()}",
                f"test -n {self._quoted()}",
            )
        )

    def _delimiter(self) -> str:
        return self._pick("E0", "'E0'", '"E0"')

    def _message(self) -> str:
        """Return lines in which nothing is expanded."""
        lines = ("fix: (a) it's\n", "\n", '- x; p4 a && p3 "b\n', "  E0\n", "E0 )\n", ")\np4\n")
        return "".join(self.random.choice(lines) for _ in range(self.random.randint(0, 3)))

    def _plain_command(self) -> str:
        return " ".join([self.random.choice(PROGRAMS), self._pick("a", "-f", "b c"), self._pick("; p2 x", "&& p3", "")])

    def _tool(self) -> str:
        command = f"{self._program()} {self._word()}"
        return self.random.choice(
            (
                f"env A=1 {command}",
                f"env -i -u Q PATH=$PATH LOG=$LOG {command}",
                f"timeout 5 {command}",
                f"timeout -k 1 -s TERM 5 {command}",
                f"nice -n 1 {command}",
                f"nice {command}",
                f"sh -c '{self._plain_command()}'",
                f'bash -c "{self._plain_command()}"',
                f"bash -ec '{self._plain_command()}' x y",
                f"command {command}",
                f"time {command}",
                f"echo a | xargs -n 1 {self.random.choice(PROGRAMS)} b",
                f"echo a | xargs -I{{}} {self.random.choice(PROGRAMS)} {{}}",
                f"sh <<< '{self._plain_command()}'",
                f"env sh -c '{self._plain_command()}'",
                f"exec {command}",
                f"builtin eval '{self._plain_command()}'",
                f"trap '{self._plain_command()}' EXIT",
            )
        )

    def _quoted(self) -> str:
        return self.random.choice(
            ("'a b'", '"a $v"', "'$(rm x)'", '"`p2`"', '"$(p3 a)"', '"\\$(rm)"', "'a;rm x'", '"a;b|c&d"', "''")
        )

    def _word(self) -> str:
        word = self._piece()
        while self._maybe(0.15):
            word += self._piece()
        return word

    def _piece(self) -> str:
        if self.depth > 3 or self._maybe(0.6):
            return self.random.choice(_LETTERS)
        if self._maybe(0.35):
            return self._quoted()
        inner = self._inner() if self._maybe(0.5) else self.random.choice(PROGRAMS) + " z"
        tick = inner if not set("`\\\n#'\"$") & set(inner) else "p4 z"
        return self.random.choice(
            (
                "$v",
                "${w}",
                '"$w"',
                "${v:-d}",
                f"${{v:-$({inner}\n)}}",
                f"$({inner}\n)",
                f'"$({inner}\n)"',
                f"`{tick}`",
                f'"`{tick}`"',
                f"<({inner}\n)",
                "{a,b}",
                "x{1..3}",
                "*.q",
                "\\;",
                "\\\n",
                "$'a\\nb'",
                "$(( 1 + 2 ))",
                "~",
                "$HOME",
                '"${w:+$(p1 y)}"',
                f"`p1 \\`p2 {self._pick('a', 'b')}\\``",
                '"${v:-`p3 u`}"',
                "@{u}",
                "a#b",
                "'it''s'",
                '"a\\"b"',
                "\\a\\ b",
                "{a",
                "a,b}",
                "}",
                "=",
                "a=b",
                "-x=$v",
                "é",
                "!",
                "[a]",
                "?.q",
                "%1",
                "$$",
                "$?",
                "$",
                '"$"',
                "${#v}",
                "${v#a}",
                '"${v//a/$(p1 y)}"',
                "$'\\''",
                '$"a"',
                '"$(p1 "y z" \'|\')"',
                "\"a 'b' $(p2 'c d')\"",
            )
        )

    def _redirects(self) -> str:
        text = ""
        while self._maybe(0.12):
            text += self.random.choice(
                (
                    " > o1",
                    " 2>&1",
                    " 2>/dev/null",
                    " >> 'o 2'",
                    " < f.txt",
                    " <<< a",
                    f" <<< {self._quoted()}",
                    " &> o3",
                    " >| o1",
                    " 2> o4 z",
                    ">o1",
                    "2>o1",
                    " 2 >o1",
                    " a2>o1",
                    "<f.txt>o2",
                    " >&2",
                    " <&0",
                    " 2>&-",
                    " {v}>o1",
                    " > >(p1 y)",
                    " < <(p2 y\n)",
                    ' > "o$(p3 y)"',
                    " &>> o3",
                )
            )
        if self._maybe(0.06) and not self.documents and not self.closed:
            text += self._document()
        return text

    def _document(self) -> str:
        number = self.random.randint(1, 9)
        quote, tabs = self._pick("", "", "'", '"'), self._pick("", "-")
        body = "\n".join(
            self._pick("text", "\t$(p1 h)", "`p2 h`", "it's", '"q"', "$v ${w:-$(p3 h)}", "\\$(rm)", "a \\", "\tx")
            for _ in range(self.random.randint(0, 3))
        )
        body = body.removesuffix("\\")
        end = ("\t" if tabs and self._maybe(0.5) else "") + f"E{number}"
        self.documents.append((body + "\n" if body else "") + end)
        return f" <<{tabs}{quote}E{number}{quote}"
