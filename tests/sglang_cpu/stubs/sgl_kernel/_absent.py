"""Kernels that the stand-in does not have: importable, and an error that names them when called."""

import importlib.abc
import importlib.machinery
import sys
import types


class Absent:
    """A function, or a namespace of functions, that nobody should call on a CPU."""

    def __init__(self, name):
        self.__dict__["__name__"] = name

    def __call__(self, *args, **kwargs):
        raise NotImplementedError(f"the rig's kernels have no {self.__name__}")

    def __getattr__(self, name):
        return absent_attribute(self.__name__, name)


def absent_attribute(owner, name):
    """Answer a module's or a namespace's `__getattr__`; dunder names are really absent."""
    if name.startswith("__"):
        raise AttributeError(name)
    return Absent(f"{owner}.{name}")


class AbsentModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds every submodule that is not there as a file; its names are those of the package, else absent."""

    def __init__(self, package, names):
        self.package, self.names = package, names

    def find_spec(self, fullname, path, target=None):
        if fullname.startswith(self.package + "."):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__path__ = []
        module.__getattr__ = lambda name: self.names.get(name) or absent_attribute(spec.name, name)
        return module

    def exec_module(self, module):
        pass


def serve_absent_submodules(package, names):
    """Serve `import package.anything`; real files of the package win, because this finder stands last."""
    sys.meta_path.append(AbsentModules(package, names))
