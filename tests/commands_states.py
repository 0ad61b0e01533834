"""Shell texts made at random that set, change and lose values, and then use them: food for the oracle that runs bash.

What a text sets may not have happened: behind a redirection that fails, an error that cuts the line short, a loop that
ends early, a subshell, a branch that is not taken. The programs are `p1` (succeeds) and `p2` (fails), every file a bare
name in the scratch directory, every loop ends. The same seed gives the same text.
"""

from __future__ import annotations

from random import Random

_VALUES = (
    "a", "b", "5", "'a b'", "$x", "$y", '"$x"', "${x:-d}", "$(pwd)", "$((1+2))", "$((x+1))", "$(echo z)", "$(p1 0)",
    "*.q", "$(x=7; pwd)", "$([[ a = b ]] && pwd)", "$(pwd >&2)", "$({ pwd; } 2>/dev/null)", "$(printf '%s' k)",
)  # fmt: skip
_USES = (
    "$x", '"$y"', "$y", "1", "lit", "${x}k", '"$(pwd)"', "{a,$x}", "$((x*2))", "~", "$PWD", "${x%a}", '"$(echo "$x")"',
)  # fmt: skip
_MOVES = ("cd d", "cd ..", "cd nope", 'cd "$x"')
_CHANGES = (
    "true", "false", "cd d || exit", "cd nope || { exit & }", "cd nope || return", "! cd d", "{ true || exit; }",
    "cd d &", "cd d | p1 1", "cd nope && exit", 'p1 "$PWD"', "break", "continue", "break 2", ": ${x:=n}", "read x",
    "export x=$y", "export y=b", "declare x=c", "unset x", "local x=3", "readonly r=1", "r=2", "x=1 p1 $x",
    '[ -n "$x" ]', "[[ $x == a ]]", "[[ -n $y ]]", "! true", "printf -v x %s w", "eval 'x=ev'", "b\\reak", "exit",
    "command break", ": $((x))", ": $((1/0))", ": $((1x))", ": ${x?}", "x+=t", "let x=4", "set -- 1 2", "shift",
    "mapfile y < f.txt", "{ x=in; }", "(x=sub; p1 $x)", "x=bg & wait", "p1 $x | read y", "for x in 1; do :; done",
    "return", "x[1]=3", "y=(u v)",
)  # fmt: skip
_REDIRECTS = (" < nope", " > nope/f", " 2>/dev/null", " >&9", " < f.txt", " > out", " 2>&1", ' <<< "$x"')
_LINES = (
    "", "hi $x\n", "do p1 'x\n", "do for g in 'x\n", "done\n", "then p1 '\n", "fi\n", "'\n", '"\n', ")\n", "p1 doc\n",
    "$(p1 5)\n",
)  # fmt: skip
_LISTS = ("a b", "$x", "c $x", "*.q", "{1,2}", "a *.q", "zz*", "1")
_TESTS = ("[[ $x == a ]]", "false", "p2 1", "read x", '[ -n "$n" ]', "x=w; p2 1")
_STEPS = ("break", "x=q", "n=; false")


class States:
    """Makes texts from one random source."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311
        self.documents: list[str] = []

    def text(self) -> str:
        """Return one text, at whose end the values are shown."""
        self.documents = []
        return f'x=a; y=b; {self._list(3)}{self._line_end()}p1 "$x" "$y"'

    def _pick(self, choices: tuple[str, ...]) -> str:
        return self.random.choice(choices)

    def _list(self, depth: int, *, one: bool = False) -> str:
        text = self._command(depth) + self._redirect()
        for _ in range(0 if one else self.random.choice((0, 1, 1, 2, 3))):
            joint = self._pick(("; ", "; ", "\n", " && ", " || "))
            text += (self._line_end() if joint == "\n" else joint) + self._command(depth) + self._redirect()
        return text

    def _command(self, depth: int) -> str:
        roll = self.random.random() if depth else 1.0
        if roll < 0.16:
            return self._branch(depth - 1)
        if roll < 0.34:
            name, words = self._pick(("x", "y", "f")), self._pick(_LISTS)
            return f"for {name} in {words}{self._joint()}do {self._list(depth - 1)}{self._joint()}done"
        if roll < 0.4:
            test, body = self._pick(_TESTS), self._list(depth - 1)
            head = f"{self._pick(('while', 'until'))} {test}{self._joint()}do {body}"
            return f"{head}; {self._pick(_STEPS)}; [ $((i++)) -gt 3 ] && break{self._joint()}done"
        if roll < 0.46:
            return f"{{ {self._list(depth - 1)}; }}"
        return f"({self._list(depth - 1)})" if roll < 0.5 else self._simple()

    def _branch(self, depth: int) -> str:
        text = f"if {self._list(depth, one=True)}{self._joint()}then {self._list(depth)}{self._joint()}"
        roll = self.random.random()
        if roll < 0.3:
            text += f"elif {self._list(depth, one=True)}; then {self._list(depth)}{self._joint()}"
        elif roll < 0.6:
            text += f"else {self._list(depth)}{self._joint()}"
        return text + "fi"

    def _simple(self) -> str:
        roll = self.random.random()
        if roll < 0.34:
            return f"{self._pick(('x', 'y'))}={self._pick(_VALUES)}"
        if roll < 0.62:
            return " ".join(
                (self._pick(("p1", "p1", "p2")), *(self._pick(_USES) for _ in range(self.random.randint(1, 2))))
            )
        return self._pick(_MOVES if roll < 0.7 else _CHANGES)

    def _redirect(self) -> str:
        roll = self.random.random()
        if roll >= 0.2:
            return ""
        if roll >= 0.12:
            return self._pick(_REDIRECTS)
        mark = self._pick(("E", "F"))
        self.documents.append(mark)
        return " <<" + self._pick((mark, f"'{mark}'"))

    def _joint(self) -> str:
        return "; " if self.random.random() < 0.5 else self._line_end()

    def _line_end(self) -> str:
        """End a line, with the here-documents it announced."""
        documents, self.documents = self.documents, []
        bodies = (
            "".join(self._pick(_LINES) for _ in range(self.random.randint(0, 3))) + f"{each}\n" for each in documents
        )
        return "\n" + "".join(bodies)
