"""Faults at every call of the decision path: run as a program, it rewrites each call of the path so that it can fail.

`python -m tests.faults STEP OFFSET` takes every STEP-th call site of the modules below, from the syntax tree, makes it
raise each of `FAULTS` under every request that reaches it, and prints as JSON how many sites there are, how many
faults were thrown, and which of them came out as allow.
"""

from __future__ import annotations

import ast
import importlib
import json
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

PATH = ("policyd.engine", "policyd.policy", "policyd.paths", "policyd.commands", "policyd.urls", "policyd.tools")
BEFORE = ("policyd.policy.build", "policyd.policy.read", "policyd.policy.file", "policyd.policy.wording")
"""Modules of loading: what fails there fails before there is a decision."""


class InjectedError(Exception):
    """A fault nobody foresees."""


FAULTS: tuple[type[BaseException], ...] = (InjectedError, OSError, ValueError, KeyError, RecursionError)


class Faults:
    """Which call site is armed, and what it throws."""

    def __init__(self) -> None:
        self.sites: list[str] = []
        self.armed = -1
        self.fault: type[BaseException] = InjectedError
        self.thrown = False
        self.reached: set[int] = set()

    def at(self, number: int) -> None:
        self.reached.add(number)
        if number == self.armed:
            self.thrown = True
            raise self.fault("injected")


faults = Faults()


class Rewriter(ast.NodeTransformer):
    """Puts `__at__(n)` in front of every call."""

    def __init__(self, module: str) -> None:
        self.module = module

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        number = len(faults.sites)
        faults.sites.append(f"{self.module}:{node.lineno}")
        at = ast.Call(ast.Name("__at__", ast.Load()), [ast.Constant(number)], [])
        pair = ast.Tuple([at, node], ast.Load())
        return ast.copy_location(ast.Subscript(pair, ast.Constant(1), ast.Load()), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.body = [self.visit(one) for one in node.body]
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.body = [self.visit(one) if isinstance(one, ast.FunctionDef) else one for one in node.body]
        return node


class Finder(MetaPathFinder, Loader):
    """Loads the modules of the path rewritten."""

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        if not name.startswith(PATH) or name.startswith(BEFORE):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.origin and spec.origin.endswith(".py"):
            spec.loader = self
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        assert spec is not None and spec.origin is not None
        with open(spec.origin, encoding="utf-8") as file:
            tree = ast.parse(file.read())
        body = [
            Rewriter(module.__name__).visit(one) if isinstance(one, ast.FunctionDef | ast.ClassDef) else one
            for one in tree.body
        ]
        tree.body = body
        module.__dict__["__at__"] = faults.at
        exec(compile(ast.fix_missing_locations(tree), spec.origin, "exec"), module.__dict__)  # noqa: S102


def run(step: int, offset: int) -> dict[str, Any]:
    """Throw every fault at every `step`-th site that a request reaches."""
    sys.meta_path.insert(0, Finder())
    scenes = importlib.import_module("tests.fault_scenes")
    thrown, allowed = 0, []
    for number, decide in enumerate(scenes.scenes()):
        wanted = number < len(scenes.ALLOWED)
        assert scenes.allows(decide()) is wanted, f"scene {number} comes out wrong without faults"
        faults.reached = set()
        decide()
        for site in sorted(faults.reached):
            if site % step != offset:
                continue
            for fault in FAULTS:
                faults.armed, faults.fault, faults.thrown = site, fault, False
                try:
                    answer = decide()
                except Exception:
                    answer = None
                faults.armed = -1
                thrown += faults.thrown
                if faults.thrown and scenes.allows(answer):
                    allowed.append([number, faults.sites[site], fault.__name__])
    return {"sites": len(faults.sites), "thrown": thrown, "allowed": allowed}


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]), int(sys.argv[2]))))
