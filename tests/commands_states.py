"""Shell texts made at random that set, change and lose values and directories, and then use them.

What a text sets may not have happened: behind a redirection that fails, an error that cuts the line short, a loop that
ends early, a subshell, a branch that is not taken. `RULES` is the grammar: a rule is its alternatives, `@name` in one
is another rule, `@n` a name that is used once. Every loop ends: those that a test ends count in their head, functions
call only what stands before them. Every file is a bare name in the scratch directory. The same seed gives the same
text.
"""

from __future__ import annotations

import re
from random import Random

DEPTH = 2
"""How deep commands may stand in each other."""

RULES: dict[str, tuple[str, ...]] = {
    "text": (
        'x=a; y=b; @list\np1 "$x" "$y"; p1 $x $PWD', '@list\np1 "$x" "$y"', 'x=a\n@list\np1 $x . "$y" > "o$x"',
        'x=a; y=b; @frame\np1 "$x" "$y"; p1 $x . > o1', 'x=a; y=b; @step\n@frame\np1 "$x" "$y"; p1 $x $PWD',
        'x=a; y=b; @frame; @frame\np1 $x "$y" .',
    ),
    "frame": (
        "@set@failing", "{ @set; }@failing", "for x in q; do @set; done@failing", "if @set; then :; fi@failing",
        "{ { @set; }@failing; }", "[[ a ]] && { @set; }@failing", "case a in a) @set;; esac@failing",
        'case a in a) @set;& b) p1 "$x" .;; esac', 'case a in a) @set;;& *) p1 "$x" .;; esac',
        "{ @set; p1 $x . > out; }@failing", "{ @set; p1 $x > out; } > out",
        "@step", "{ @step; }", "(@step)", "@step && p1 1", "@step || p1 1", "true && @step", "false && @step",
        "true || @step", "false || @step", "! @step", "@step &", "@step & wait", "@step | p1 1", "p1 1 | @step",
        "p3 q | @step", "if @step; then p1 1; fi", "if @step; then p1 1; else p1 2; fi", "if true; then @step; fi",
        "if false; then @step; fi", "if false; then :; else @step; fi", "if false; then :; elif @step; then p1 1; fi",
        "for x in a b; do @step; done", 'for v in a b; do @step; p1 "$x" .; done',
        'for v in a b; do p1 "$x" .; @step; done', "for v in *.q; do @step; done", "for v in zz*; do @step; done",
        "for v in $nope; do @step; done", "for v in a b; do @step; break; done",
        "for v in a b; do [ $v = b ] || continue; @step; done", "for v in a b; do @step || break; done",
        "for v in a b; do @step && break; done",
        "while @n=${@n-}.; [[ $@n != ...* ]] && read -r v; do @step; done < g",
        "while @n=${@n-}.; [[ $@n != ...* ]] && { @step; }; do p1 1; break; done",
        "until @n=${@n-}.; [[ $@n == ...* ]] || { @step; }; do p1 1; break; done",
        "while @n=${@n-}.; [[ $@n != ...* ]] && true; do @step; break; done",
        "until @n=${@n-}.; [[ $@n == ...* ]] || false; do @step; break; done", "while false; do @step; done",
        "until true; do @step; done", "case a in a) @step;; esac", "case b in a) @step;; esac",
        "case $x in a) @step;; *) x=z;; esac", "f() { @step; }; f", "f() { @step; }", "eval '@step'", "time @step",
        "set -e; @step", "set -e; @step || true", "set -e; if @step; then :; fi", "x=$(@step)", 'p1 "$(@step)"',
        "{ @step; } > out", "{ @step; } < nope", "(@step) < g", "{ @step; } | p1 1", "@step < nope", "@step > out",
        "@step 2>&1", "@step <<< k", '(set -e; @step; p1 "$x" .)', '{ p1 1; @step; p1 "$x" .; } 2>/dev/null',
        "for v in a; do { @step; }; done; p1 $v", '{ @step; p1 "$x" .; } &', 'trap "p1 t" EXIT; @step',
        "shopt -s nullglob; @step", "for ((i = 0; i < 2; i++)); do @step; done", "[[ $x == a ]] && @step",
        '[ "$x" = z ] || @step', "@step; x=n", "true; @step; true", "{ true; @step; } && p1 1",
        "if ! @step; then p1 1; fi", "for x in a $y b; do @step; done", "for x; do @step; done",
        "p2 1 && @step || p1 1", "p1 1 || @step && p1 2", "@step\n@step", "@step; @step", "cd d && @step",
        "cd nope; @step", "cd d; @step", "x=w; @step", "unset x; @step", "readonly x; @step",
        "while @n=${@n-}.; [[ $@n != ...* ]] && read -r x; do @step; done < g",
    ),
    "step": (
        "@set", "@set", "@set", "@set", "@assign", "@assign", "@change", "@move", "@move", "@guard", "@guard",
        "@move@redirect", "@jump@redirect", "@change@redirect",
    ),
    "set": (
        "x=q", "x=z declare x=q", "y=q", "x=q y=r", "x=$y", "export x=q", "declare x=q", "readonly x=q", "x=q; y=$x",
        "cd d", "cd d && x=q", "x=q; cd d",
    ),
    "failing": (" < nope", " > nope/f", " >&9", " 2> nope/f", " < g", ' > "$y/f"'),
    "guard": (
        "cd d || @jump", "cd nope || @jump", "true || @jump", "false || @jump", "cd nope && @jump",
        "{ cd nope || @jump; }", "if cd nope; then :; else @jump; fi", "cd d || { p1 e; @jump; }",
        "cd nope || { p1 e; @jump; }", "! @jump", "cd nope || { false && @jump; }", '[ -n "$x" ] || @jump',
        "{ true || @jump; }",
    ),
    "list": ("@chain", "@chain@sep@chain", "@chain@sep@chain", "@chain@sep@chain@sep@chain"),
    "chain": (
        "@pipe", "@pipe", "@pipe", "@pipe && @pipe", "@pipe || @pipe", "@pipe && @pipe || @pipe",
        "@pipe || @pipe && @pipe", "@pipe & @pipe",
    ),
    "pipe": (
        "@command", "@command", "@command", "@command", "@command", "@command", "@command", "@command",
        "@command | @command", "! @command", "@compound", "@compound", "@compound@redirect",
    ),
    "command": (
        "@assign", "@assign", "@use", "@use", "@move", "@change", "@change", "@use@redirect", "@move@redirect",
        "@change@redirect",
    ),
    "compound": (
        "if @list@sep then @list@sep fi", "if @test@sep then @list@sep else @list@sep fi",
        "if @test@sep then @list@sep elif @test@sep then @list@sep fi", "for @var in @words@sep do @list@sep done",
        "for @var in @words@sep do @list@sep done", "for @var in @words@sep do @test || @jump@sep@list@sep done",
        "while @n=${@n-}.; [[ $@n != ...* ]] && { @test; }@sep do @list@sep done",
        "until @n=${@n-}.; [[ $@n == ...* ]] || { @test; }@sep do @list@sep done",
        "while @n=${@n-}.; [[ $@n != ...* ]] && { @list@sep }@sep do @list@sep done",
        "while read -r @var && @n=${@n-}. && [[ $@n != ...* ]]; do @list@sep done < @file",
        "p3 @word @word | while read -r @var && @n=${@n-}. && [[ $@n != ...* ]]; do @list@sep done", "{ @list@sep }",
        "{ @list@sep }", "(@list)", "( @list )", "case @word in @word) @list@sep;; *) @list@sep;; esac",
        "case $x in a) @list;; b) @list;& c) @list;; esac", "select @var in @words; do @list; break; done < @file",
        "@n() { @list@sep }; @n @word", "for ((i = 0; i < 2; i++)); do @list@sep done", "time @command",
        "time { @list@sep }", "[[ @cond ]]", "[[ @cond ]] && @command", "@var=$(@list)", 'p1 "$(@list)"', "x=`@word`",
    ),
    "test": (
        "true", "false", "p1 1", "p2 1", '[ "$x" = a ]', "[[ $x == a ]]", '[ -n "$y" ]', "read -r x", "@move",
        "@command", "! @command", "test -f g", "test -d @word", "@assign",
    ),
    "cond": ("$x == a", "-n $y", "-f g", "$x = @word", "! -d d", "a < b", "$x =~ a", "-z @word || $y == b", "$x -gt 2",
        '"$x" -eq "$y"', "$# -gt 1 || x -lt 3", "$? -ne 0"),
    "jump": (
        "break", "continue", "exit", "return", "break 2", "exit 1 2", "continue 2", "exit $x", "{ break; }",
        "{ p1 1; exit; }", "{ exit & }", "(exit)", "exit > nope/f", "exit | true", "command exit", "\\exit",
        "builtin exit", "x=1 exit", "break > nope/f", "exit x", "eval exit", "time exit", "return 1",
    ),
    "move": (
        "cd d", "cd ..", "cd nope", 'cd "$x"', "cd d/e", "cd", "cd -", "cd d && p1 .", "cd nope || @jump",
        "cd d || @jump", "cd $x", "cd d e", "cd -- d", "cd -P d", "cd ''", 'cd "$PWD/d"', "cd $OLDPWD", "cd ./d",
        "cd d/..", "cd l/../e", "cd ../d", "pushd d", "popd", "pushd d > /dev/null", "cd ~", "cd l", "cd l/..",
        "cd -P l", "cd -L l/..",
        "builtin cd d", "command cd d", "cd d 2>/dev/null", "cd * ", "cd d*", "cd {d,nope}", "chdir d", "cd -Q d",
        "cd d && cd -", "pushd d && popd",
        "pushd d && cd e && popd", "pushd", "pushd -n d", "dirs -c", "cd - > /dev/null", "cd - >&9", "popd >&9",
        "cd d && cd ..", "cd / && cd $OLDPWD", "false && cd d && cd ..", "OLDPWD=d cd -", "cd -; cd -", "pushd ..",
        "cd g", "HOME=d cd", "CDPATH=d cd e", "cd $(pwd)/d", "eval cd d", "env cd d", 'cd "$(dirname d/e)"',
        'cd "$(p3 d)"',
    ),
    "assign": (
        "@var=@value", "@var=@value", "@var=@value", "@var=@value", "@var=@value", "x=@value y=@value", "x+=@word",
        "export @var=@value", "declare @var=@value", "local @var=@value", "readonly @var=@value",
        "printf -v @var %s @word", "printf -v x %d @word", "printf -v x '%s%q' a", "read -r @var < @file",
        "read -r x y <<< '1 2'", "read x", "unset @var", "typeset @var=@value", "export -n @var=@value",
        "mapfile -t @var < @file", "x=(@words)", "y[1]=@word", "x[0]=@word", "x=@value true", "x=@value :",
        "x=@value export y", "x=@value p1 $x", "((x = 4))", ": ${@var:=@word}", ": ${@var=@word}", "eval x=@word",
        "getopts ab: @var", "set -- @words", "shift", "IFS=@sepchar", "IFS=@sepchar read x y <<< 'a,b'",
        "declare -i x", "declare -u x=@value", "declare -r x=@value", "declare -a x", "export x", "unset -v x",
        "unset -f x", "declare -g x=@value", "x=@value; x=@value", "x=@value && y=$x", "x=@value || y=@value",
        "true && x=@value", "p2 0 || x=@value", "false && x=@value", "! x=@value", "OLDPWD=d", "PWD=d", "HOME=d",
        "CDPATH=d", "CDPATH=d:.", "x=1 y=$x p1 $x $y", "{ x=@value; }", "(x=@value)", "x=@value & wait",
        "p3 a b | read x y", "x=$y", "x=1; ((x++))", "x+=b", "x=(@words)", "x=(a 'b c')",
        "x+=(@words)", "x=(a b); y=$x",
        "((x += 2))", "x=$((x+1))", "let x++", "let 'y = x * 2'", "x=5; y=$((x > 3))", "((y = x))", "x='a[$(p4 9)]'",
        "y=0; while ((y < 2)); do ((y++)); @use; done", "x=0; for v in @words; do ((x++)); done", "((x))", ": $((x))",
        "read x < nope", "export x=@value > nope/f", "readonly x", "wait -n",
        "x=@value; readonly x; x=@value", "command x=1", "command export x=@value", "builtin export x=@value",
        "local x",
    ),
    "sepchar": ("a", ",", "''", "/", "'/ '", "."),
    "change": (
        "true", "false", ":", "@jump", "true || @jump", "p2 1 || @jump", "p1 1 && @jump", "p2 1 && @jump",
        "{ true || @jump; }", '[ -n "$x" ] || @jump', "set -e", "set -u", "set +e", "set -f", "set -eu", "set -eET",
        "set -e -- @words",
        "set -o pipefail", "set -x", "set -C", "set -a", "shopt -s nullglob", "shopt -s failglob", "shopt -s extglob",
        "shopt -s cdable_vars", "shopt -s lastpipe", "shopt -u nullglob", "set -o posix", "set -k", "set -P",
        "trap 'p1 t' EXIT", "trap 'x=t' DEBUG", "trap 'p1 e $x' ERR", "trap - EXIT", "wait", "exec < g",
        "exec 2>/dev/null", "exec > out", "exec > nope/f", "exec p1 @word", "exec 3> out", "exec 3>&-",
        "exec {v}> out", ": ${x?}", ": ${nope?}", ": ${nope:?no}", ": $((1/0))", ": $((08))", ": ${x:1:-9}",
        ": ${x@Q}", ": ${x[1/0]}", "p1 $((1/0)) 2", "eval '@command'", "eval false", "source nope", ". ./nope",
        "alias q=p1", "p1 $(exit 3)", "p1 nope*", "p1 *.q", "p1 {a,$x}", "p1 $((2*3))", "echo @word",
        "p1 @word; @jump", "sh -c 'x=s; cd d; p1 $x'", "bash -c 'p1 \"$1\" $x' _ @word", "env x=@word p1 $x",
        "xargs p1 @word < g", "timeout 5 p1 $x", "p1 @word | p1 $x", "test 1 -eq 1", "[ $x -eq 1 ]", "enable -n cd",
        "((i++))", "read -t 0 x", "command -v nope", "command -v p1",
    ),
    "use": (
        "p1 @word", "p1 @word @word", "p2 @word", "p1 $x", 'p1 "$x" $y', 'p1 "$PWD"', "p1 $PWD/k", "p1 .",
        'p1 "$(pwd)"', "p3 @word", "p1 ~ ~+ ~-", "p1 $OLDPWD", "p1 $HOME", 'p1 "$@"', "p1 $# $1", "p1 ${x}k",
        "p1 $x$y", "p1 ${x:-$y}", "p1 ${#x} ${x%a}", "p1 $x > @target", "p1 $x < @file", "p1 < @target > @target",
        "p1 2> @target", "p1 $x >> @target", "p1 &> @target", "p1 @word <> @target", "p1 {$x,$y}", 'p1 "${x[@]}"',
        'p1 "k${x[@]}l"', 'p1 "${x[1]}" "${x[0]}"', 'p1 {1,"${x[@]}"}',
        'for v in "${x[@]}"; do p1 $v "$v"; done',
        "p1 $'$x'", "p1 '$x'", "p1 \\$x", "p1 $i", "p1 $v", "git $x",
    ),
    "target": (
        "out", "out", '"$x"', "$x", '"o$y"', "d/out", "nope/f", "../out", '"$PWD/out"', "$y", '"$(pwd)/o2"', "o*",
        "d/$x", "~/out", "{a,b}", "g",
    ),
    "file": ("g", "g", "nope", '"$x"', "d/g", "/dev/null"),
    "words": (
        "a b", "$x", "c $x", "*.q", "{1,2}", "a *.q", "zz*", "1", "$x $y", '"$x" b', '"$@"', "$(p3 a b)", "", "$nope",
        "'a b' c", "d nope", "nope d", "d", "$((1+1)) 3", "a $(p2 x)", "?.q [1-2].q", "..", '"${x[@]}"', "a b c d",
    ),
    "var": ("x", "x", "y", "y", "f", "v"),
    "value": (
        "a", "b", "5", "d", "'a b'", "$x", "$y", '"$x"', "${x:-d}", "$(pwd)", '"$(pwd)"', "$PWD", "$((1+2))",
        "$(echo z)", "$(p1 0)", "*.q", "$(x=7; pwd)", "$([[ a = b ]] && pwd)", "$(pwd >&2)", "", '""',
        "$(basename k/m)", "$(dirname a/b)", "$(dirname a/b >&2)", "$(basename k < nope)", "$(git rev-parse HEAD)",
        "$(git rev-parse HEAD 2>/dev/null || p3 z)", "$(cat @doc\n)", "~", "~/k", "$((1/0))", "${nope?}",
        "$(cd d && pwd)", "$(p2 1)", "$(exit 1)", "$OLDPWD", "$x$y", "{a,b}", "\\$x", "'$x'", "$1", "$#", "`pwd`",
        "$(seq 2)", "$(basename $x)", '"$(basename "$PWD")"', "$(false; pwd)", "$(cd d; pwd)", "$(printf '%s' k)",
        "a:~", "$?", "$_", "-n", "g", "out", "'*'", "'[12].q'", "\\*.q", "'a  b'", "' a '", "$'a\\nb'", "'~'",
        "'{a,b}'", "a=~", "\"it's\"", "'\\*'", "'$(p1 9)'", "a,b", "'a:b'", "..", "d/", "./d", "$(echo a b)",
        "$'\\t'", "é", '"a b"*', "{1..2}", "$(@command)", '"$(@command)"', "$(@assign)", '"$(@compound)"',
        "$(@chain)",
    ),
    "word": (
        "$x", '"$y"', "$y", "1", "lit", "${x}k", '"$(pwd)"', "{a,$x}", "$((x*2))", "~", "$PWD", "${x%a}",
        '"$(echo "$x")"', "$(basename $x)", "a", "'a b'", "*.q", "nope*", "$f", "$v", '"$x$y"', "$nope", '"$nope"',
        "$(pwd)/k", "d/$x", "-n", "$(git rev-parse HEAD)", "${y:-q}", '"${x:+k}"', "$((3))", "${x:0:1}", "$(p3 z)",
        "$'a'", "x=$x", "${x/a/b}", '"$(@command)"', "$(@assign)",
    ),
    "redirect": (
        " < nope", " > nope/f", " 2>/dev/null", " >&9", " < g", " > out", " 2>&1", ' <<< "$x"', " > @target",
        " 2> @target", "@doc", "@doc", " <&-", " >&-", " < @file", " {v}> out", " &> @target", " 3< nope",
        " > @target < @file",
    ),
    "doc": (" <<E", " <<'E'", " <<-E", " <<F"),
    "line": (
        "", "hi $x\n", "do p1 'x\n", "do for g in 'x\n", "done\n", "then p1 '\n", "fi\n", "'\n", '"\n', ")\n",
        "p1 doc\n", "$(p1 5)\n", "${x:=h}\n", "\t$x\n", "$((1/0))\n", "${nope?}\n",
    ),
    "sep": ("; ", "; ", "\n"),
}  # fmt: skip
_PART = re.compile(r"@([a-z]+)|\n|<<-?'?([EF])'?")


class States:
    """Makes texts from one random source."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311
        self.names = 0
        self.documents: list[str] = []

    def text(self) -> str:
        """Return one text, at whose end the values are shown."""
        return self._made("text", 0)

    def _made(self, rule: str, depth: int) -> str:
        if rule == "compound":
            depth += 1
            rule = "command" if depth > DEPTH else rule
        template = self.random.choice(RULES[rule])
        self.names += "@n" in template
        name, made, at = f"n{self.names}", [], 0
        for part in re.finditer(_PART, template):
            made.append(template[at : part.start()])
            at = part.end()
            made.append(self._part(part, depth, name))
        return "".join(made) + template[at:]

    def _part(self, part: re.Match[str], depth: int, name: str) -> str:
        if part[1] == "n":
            return name
        if part[1]:
            return self._made(part[1], depth)
        if part[2]:
            self.documents.append(part[2])
            return part[0]
        return self._line_end()

    def _line_end(self) -> str:
        """End a line, with the here-documents it announced."""
        documents, self.documents = self.documents, []
        bodies = [
            "".join(self.random.choice(RULES["line"]) for _ in range(self.random.randint(0, 3))) + f"{each}\n"
            for each in documents
        ]
        return "\n" + "".join(bodies)
