"""On a terminal that can't show a character, print the nearest plain one instead of failing."""

from __future__ import annotations

import codecs
import io
import sys

ERROR_HANDLER = "braided-nearest"  # the name of the error handler
SIMILAR = ("“”‘’−–—─━•×·µ²₀ℓ\xa0", "\"\"''-----*x.u20l ")  # characters, and the plain one for each
LONGER = {"…": "...", "≥": ">=", "≤": "<=", "→": "->"}
GREEK = {"λ": "lambda", "σ": "sigma", "γ": "gamma", "ν": "nu", "η": "eta", "ρ": "rho", "χ": "chi"}
PLAIN_FOR = dict(zip(*SIMILAR, strict=True)) | LONGER | GREEK


def replace_what_terminals_lack() -> None:
    """Let standard output and error replace characters that their encoding lacks."""
    codecs.register_error(ERROR_HANDLER, _nearest)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=ERROR_HANDLER)


def shows_everything() -> bool:
    """Return whether standard output can show every character."""
    return (sys.stdout.encoding or "utf-8").lower().replace("_", "-").startswith("utf")


def _nearest(error: UnicodeError) -> tuple[str, int]:
    """Replace characters that can't be encoded: by similar plain ones, else by escapes such as \\xe9."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(PLAIN_FOR.get(one) or one.encode("ascii", "backslashreplace").decode() for one in lacking), error.end
