"""How names and counts are printed: characters that control a terminal, or are invisible, become escapes."""

from __future__ import annotations

import unicodedata

# Control characters, lone surrogates, line and paragraph separators, and marks that can't be seen.
UNSEEN = {"Cc", "Cs", "Zl", "Zp", "Cf"}
JOINERS = "\u200c\u200d"  # can't be seen either, but belong to the spelling of Persian, and of emoji


def printable(name: object) -> str:
    r"""Return a name with escapes for characters that can't be seen, and all others unchanged.

    >>> print(printable("a\x1b[31mred\x07"), printable("two\nlines"), printable("Zürich"), printable(7))
    a\x1b[31mred\x07 two\nlines Zürich 7
    """
    text = str(name)
    return text if text.isprintable() else "".join(map(_shown, text))


def counted(number: int, what: str) -> str:
    """Return a number of things, in the singular or the plural.

    >>> counted(1, "round"), counted(2000, "round")
    ('1 round', '2,000 rounds')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _shown(character: str) -> str:
    is_unseen = unicodedata.category(character) in UNSEEN and character not in JOINERS
    return character.encode("unicode_escape").decode() if is_unseen else character
