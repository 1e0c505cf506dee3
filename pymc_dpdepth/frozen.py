"""Dicts, lists and arrays that refuse to be changed, for the contents of a Release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    import xarray

__all__ = ["FrozenDict", "FrozenList", "freeze", "read_only", "thaw"]


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError("This cannot be changed: it says what was released, or how. Change a copy, such as dict(...).")


class FrozenDict(dict):
    """A dict that compares, prints and turns into JSON as usual."""

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple:
        """Copy and pickle by what it holds, since nothing can be put in afterwards."""
        return FrozenDict, (dict(self),)


class FrozenList(list):
    """A list that compares, prints and turns into JSON as usual."""

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __reduce__(self) -> tuple:
        """Copy and pickle by what it holds."""
        return FrozenList, (list(self),)


def freeze(value: Any) -> Any:
    """Return a copy of nested dicts and lists that cannot be changed; a tuple stays one."""
    if isinstance(value, dict):
        return FrozenDict({key: freeze(entry) for key, entry in value.items()})
    if isinstance(value, list):
        return FrozenList(freeze(entry) for entry in value)
    if isinstance(value, tuple):
        return tuple(freeze(entry) for entry in value)
    return value


def thaw(value: Any) -> Any:
    """Return nested plain dicts and lists of what `freeze` made."""
    if isinstance(value, dict):
        return {key: thaw(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [thaw(entry) for entry in value]
    return value


def read_only(labelled: xarray.DataArray | xarray.Dataset) -> Any:
    """Return a copy of labelled arrays whose numbers cannot be written over."""
    copied = labelled.copy(deep=True)
    for array in copied.data_vars.values() if hasattr(copied, "data_vars") else [copied]:
        array.values.flags.writeable = False
    return copied
