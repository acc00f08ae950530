"""instructions: one module for each group; importing the room registers all of them.

A new file in this folder is found by itself: see `fp4ref.ptx.run.registry`.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
