"""Shell texts made at random of a command and what may stand around it: texts in texts, quoted for each other.

`FRAMES` holds what stands around: `@` is the text as it is, `@Q` the text as one word, `@H` the text and the mark that
ends it as a here-document. Every loop ends, every file is a bare name. The same seed gives the same text.
"""

from __future__ import annotations

import shlex
from random import Random

LEAVES = (
    "p1 k", "rm 'a b'", "p1 'x)'", 'p1 ")"', "p1 \\)", "p1 a # )", "case a in a) p1 x;; esac", "p1 $'\\''", "p1 a#b",
    "p1 <<K\nit's )\nK\n", "p1 <<'K'\n$(\nK\n", 'p1 "a\\"b"', "p1 'a\\'", "p1 a\\\\", 'p1 "$v"', "p1 é", "p1 a\\\nb",
    "( (p1 x) )", 'p1 a >"o 1"', "> o1 p1", "p1 <<< 'a'", "p1 {a,'b c'}", "p1 esac", 'p1 $"a"', "p1 '$(rm)'", "p1 a &",
    'p1 "$(p2 \'b)\' ")")"', "p1 `p2 b`", "v=x; p1 $v", "p1 }", "p1 ${v:-'}'}", "p1 <(p2)", "[[ a =~ \\( ]]; p1",
    'p1 "a"2>o1', 'p1 "a"2<<K\nx\nK', "p1 х2<<K\nx\nK", "p1 {v}&>o1", "p1 {v}>o1", "cd d && p1 &> o1", "{p1,a}",
    "p1 <<K\nx\nK\np1 ;p2", "p1 <<K && p2 ;p3\nx\nK", "p1 <<K\nit's\nK\np1 {a,b} 'x'", "p1 $\\\n'a'", "p1;p2",
)  # fmt: skip
FRAMES = (
    "{ @\n}", "( @\n)", "p1 $(@\n)", 'p1 "a $(@\n) b"', 'v="$(@\n)" w=b p1 c', 'export v="$(@\n)"', 'p1 "${v:-$(@\n)}"',
    "p1 ${v:-'a'$(@\n)}", "p1 {a,'b c',\"$(@\n)\"}", "p1 $'a\\'b'$(@\n)", "case a in a) @\n;; esac",
    "case a in (a) @\n;; *) p2;; esac", "case $(@\n) in a) ;; *) p1 b;; esac", "case a in $(@\n)) ;; *) p2;; esac",
    'p1 "$(case a in (a) @\n;; esac)"', "while p1; do @\nbreak; done", "for v in $(@\n) z; do p1 $v; done", "time @",
    "[[ a =~ (b|$(@\n)) ]]", "v=($(@\n) b)", "f1() { @\n}; f1", "p1 <(@\n)", "p1 < <(@\n)", 'p1 > "o$(@\n)"', "! @",
    "p1 # c '\n@", "@ # c \"", "p1 $(: # )\n@\n)", "p1 'a\\\nb'; @", "p1 esac; @", "p1 if then fi {; @", "p1 & @",
    "p1 $'\\'' $'\\\\'; @", "p1 a | @", "@ | p1", "cat <<M\nit's ) \" `p3`\nM\n@", "cat <<'M'\nit's ) `p3` $(\nM\n@",
    "cat <<M; @\nx\nM", "cat <<M && p2 <<'N'\nx $(p3 a)\nM\n$(\nN\n@", "cat <<-M\n\t$(p3 a)\n\tM\n@", "cd d && @",
    "if @\nthen p1; fi", "p1 <<M $(@\n)\nb\nM", "cat <<M\na \"$(@\n)\" 'b\nM\n", 'p1 "$(cat <<M\n$(@\n)\nM\n)"',
    "p1 \"$(cat <<'@H\n)\"", "cat <<'@H", "bash -c @Q", "sh -c @Q", "eval @Q", "env A=1 bash -c @Q",
    "echo a | xargs -n 1 bash -c @Q _", "timeout 5 bash -ec @Q",
    "sh -c @Q x", "command eval @Q", "v=@Q; p1", "cat <<< @Q", "eval \"$(cat <<'@H\n)\"",
)  # fmt: skip


def framed(frame: str, text: str) -> str:
    """Return a text with what stands around it."""
    mark = next(f"E{number}" for number in range(len(text)) if f"E{number}" not in text)
    given = {"@Q": shlex.quote(text), "@H": f"{mark}'\n{text}\n{mark}", "@": text}
    kind = next(kind for kind in given if kind in frame)
    return frame.replace(kind, given[kind])


def nested(seed: int) -> str:
    """Return a command with one to three frames around it."""
    random = Random(seed)  # noqa: S311
    text = random.choice(LEAVES)
    for _ in range(random.randint(1, 3)):
        text = framed(random.choice(FRAMES), text)
    return text
