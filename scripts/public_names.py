"""The names that a Python package shows its users, read from its sources: scripts/python-reference.py makes pages of
them.

    __all__ of a public module -> the file that defines each name -> `Thing`: node, members, bases

Nothing of the package is imported, so it needs no build.
"""

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

# Signatures of more letters have an argument a line.
WIDE = 100


@dataclass
class Module:
    """A file of the package."""

    file: Path
    tree: ast.Module

    def resolve(self, name: str):
        """The module and the node that define a name here; None for names of other packages."""
        for node in self.tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name and not is_overload(node):
                return self, node
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
                return self, node
        for node in self.tree.body:
            if isinstance(node, ast.ImportFrom) and node.level:
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        return self.imported(node, alias.name)
        return None

    def imported(self, node: ast.ImportFrom, name: str):
        """The thing that `from .x import name` brings: a definition, or a module with None."""
        folder = self.file.parent
        for _ in range(node.level - 1):
            folder = folder.parent
        for step in (node.module or "").split(".") if node.module else ():
            folder = folder / step
        if node.module and (file := source(folder)):
            return read(file).resolve(name)
        file = source(folder / name)
        return (read(file), None) if file else None


@dataclass
class Thing:
    """A function, class, attribute or constant that users see."""

    name: str
    module: Module
    node: ast.AST
    members: list = field(default_factory=list)
    bases: list = field(default_factory=list)

    @property
    def docstring(self) -> str:
        return (ast.get_docstring(self.node) or "") if not isinstance(self.node, ast.AnnAssign) else ""


_READ: dict[Path, Module] = {}


def read(file: Path) -> Module:
    """A file, parsed once."""
    if file not in _READ:
        _READ[file] = Module(file, ast.parse(file.read_text(encoding="utf-8")))
    return _READ[file]


def source(path: Path) -> Path | None:
    """The file of a module by its path without an ending."""
    files = (path.with_suffix(".py"), path.with_suffix(".pyi"), path / "__init__.py")
    return next((file for file in files if file.is_file()), None)


def file_of(package: Path, dotted: str) -> Path:
    """The file of a public module."""
    found = source(package.joinpath(*dotted.split(".")[1:]))
    if found is None:
        raise SystemExit(f"{dotted}: no such module")
    return found


def decorators(node) -> set[str]:
    return {ast.unparse(one).split("(")[0].split(".")[-1] for one in node.decorator_list}


def is_overload(node) -> bool:
    return "overload" in decorators(node)


def names(module: Module) -> list[str]:
    """The names that `__all__` of a module lists."""
    for node in module.tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    raise SystemExit(f"{module.file}: no __all__")


def public(package: Path, modules: Iterable[str]) -> dict[str, list[Thing]]:
    """These public modules with the things that they show, in the order of `__all__`."""
    _READ.clear()
    found = {}
    for dotted in modules:
        module = read(file_of(package, dotted))
        found[dotted] = []
        for name in names(module):
            defined = module.resolve(name)
            if defined is None or defined[1] is None:
                raise SystemExit(f"{dotted}.{name} is in __all__, and no file of the package defines it")
            found[dotted].append(thing(name, *defined))
    return found


def thing(name: str, module: Module, node) -> Thing:
    made = Thing(name, module, node)
    if isinstance(node, ast.ClassDef):
        members: dict[str, Thing] = {}
        collect(module, node, members, made.bases)
        made.members = sorted(members.values(), key=lambda one: (not is_attribute(one.node), one.name))
    return made


def collect(module: Module, node: ast.ClassDef, members: dict, bases: list) -> None:
    """Public members of a class, with those of its private bases; other bases go into `bases`."""
    for one in node.body:
        if isinstance(one, ast.FunctionDef) and not is_overload(one):
            shown = not one.name.startswith("_") and ast.get_docstring(one)
            if (shown or one.name == "__init__") and "setter" not in decorators(one):
                members.setdefault(one.name, Thing(one.name, module, one))
    for base in node.bases:
        text = ast.unparse(base.value if isinstance(base, ast.Subscript) else base)
        first, *rest = text.split(".")
        found = module.resolve(first)
        if found and rest and found[1] is None:
            found = found[0].resolve(rest[0])
        if found and isinstance(found[1], ast.ClassDef) and found[0].file.stem.startswith("_"):
            collect(*found, members, bases)
        elif found and found[1] is not None:
            bases.append(f"wellread.{found[1].name}")
        elif text not in ("Generic", "NamedTuple"):
            bases.append(text)


def methods(one: Thing) -> list[Thing]:
    """Those of its members that are called by their names."""
    return [member for member in one.members if member.name != "__init__" and not is_attribute(member.node)]


def is_attribute(node) -> bool:
    return isinstance(node, ast.FunctionDef) and "property" in decorators(node)


def signature(name: str, node) -> str:
    """How it is called, an argument a line where a line would be long."""
    if isinstance(node, ast.AnnAssign):
        return f"{name}: {ast.unparse(node.annotation)}"
    if is_attribute(node):
        return f"{name}: {ast.unparse(node.returns)}" if node.returns else name
    arguments = ast.arguments(**{key: getattr(node.args, key) for key in node.args._fields})
    # The object itself may also stand before a "/".
    first = "posonlyargs" if arguments.posonlyargs else "args"
    if (plain := getattr(arguments, first)) and plain[0].arg in ("self", "cls"):
        setattr(arguments, first, plain[1:])
    returns = f" -> {ast.unparse(node.returns)}" if node.returns and node.name not in ("__init__", "__new__") else ""
    line = f"{name}({ast.unparse(arguments)}){returns}"
    if len(line) <= WIDE:
        return line
    return f"{name}(\n" + "".join(f"    {piece},\n" for piece in pieces(arguments)) + f"){returns}"


def pieces(arguments: ast.arguments) -> list[str]:
    """The arguments one by one, as they are written."""
    found, plain = [], [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(plain) - len(arguments.defaults)) + arguments.defaults

    def written(one, default):
        kind = f": {ast.unparse(one.annotation)}" if one.annotation else ""
        return f"{one.arg}{kind}" + (f"{' = ' if kind else '='}{ast.unparse(default)}" if default else "")

    found += [written(one, default) for one, default in zip(plain, defaults, strict=True)]
    if arguments.posonlyargs:
        found.insert(len(arguments.posonlyargs), "/")
    if arguments.vararg:
        found.append(f"*{written(arguments.vararg, None)}")
    elif arguments.kwonlyargs:
        found.append("*")
    found += [written(one, default) for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    if arguments.kwarg:
        found.append(f"**{written(arguments.kwarg, None)}")
    return found
