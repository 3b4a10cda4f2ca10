"""Lines that can't be used, of every kind that we could think of; each must cost itself alone."""

import json
import random

CUT = b'{"time": "2012-01-01T00:00", "site": "si'
NOISE = {
    "a log message": b"Starting the collector",
    "a log message with commas": b"Starting the collector, version 1.2, pid 77",
    "a log message with a date": b"2024-01-01 00:00:00 INFO collector: started, all is well",
    "10,000 brackets": 10_000 * b"[",
    "10,000 objects": 10_000 * b'{"a":',
    "900 brackets in a field": b'{"time": ' + 900 * b"[" + 900 * b"]" + b"}",
    "no UTF-8": b"\xff\xfe\xfd",
    "Latin-1": b"Z\xfcrich,5",
    "UTF-16": "time,site".encode("utf-16"),
    "NUL bytes": 100 * b"\x00",
    "colours of a terminal": b"\x1b[31mred\x1b[0m",
    "a page of HTML": b"<html><body>502 Bad Gateway</body></html>",
    "a quote": b'"',
    "an open quote": b'"a,b,c',
    "a lone carriage return": b"a\rb,c",
    "a JSON list": b"[1, 2]",
    "a number": b"42",
    "a JSON text": b'"text"',
    "null": b"null",
    "an empty object": b"{}",
    "an object cut short": CUT,
    "two objects": b'{"a": 1} {"a": 2}',
    "an object of something else": b'{"level": "info", "message": "hello"}',
    "commas": b",,",
    "semicolons": b";;;",
    "one field more than any row": b"a,b,c,d,e,f,g,h",
    "a field of 200 kB": 200_000 * b"x" + b",b,c",
    "2 MB in one line": 2_000_000 * b"x",
}
# What stands in place of the time, the site or the value, as JSON; None is the field left out.
INSTEAD = {
    "time": {
        "30 digits": 30 * "1",
        "5,000 digits": 5000 * "1",
        "64 bits and one more": str(2**63),
        "close to 64 bits": str(2**63 - 1),
        "a word": '"yesterday"',
        "no such day": '"2012-13-45"',
        "no time": '""',
        "null": "null",
        "true": "true",
        "a list": "[2012]",
        "half a character": r'"\ud800"',
        "a huge float": "1e300",
        "nothing": None,
    },
    "site": {
        "no name": '""',
        "null": "null",
        "half a character": r'"\ud800"',
        "a NUL": r'"a\u0000b"',
        "an escape": r'"\u001b[31m"',
        "1,001 characters": json.dumps(1001 * "x"),
        "200 kB": json.dumps(200_000 * "x"),
        "an object": '{"name": "x"}',
        "nothing": None,
    },
    "wind": {
        "a word": '"calm"',
        "infinity": "Infinity",
        "beyond floats": "1e999",
        "beyond what squares allow": "-1e200",
        "30 digits": 30 * "9",
        "a decimal comma": '"5,5"',
        "false": "false",
        "a list": "[5.5]",
        "half a character": r'"\ud800"',
        "200 kB": json.dumps(200_000 * "x"),
        "nothing": None,
    },
}
NAMES_IN_CSV = {("site", "null"), ("site", "an object")}  # where all is text, these are names like any other
# These would be usable in a stream of their own: only the lines before them show that they are wrong.
OUT_OF_PLACE = {
    "an integer for a date": {"time": "7"},
    "a time zone": {"time": '"2012-01-01T00:00+01:00"'},
    "far in the past": {"time": '"1970-01-01"'},
    "a round that is complete": {},
}


def line(form, time='"2012-01-01T00:00"', site='"site 1"', wind="5.5"):
    """A line with these fields, given as JSON."""
    fields = {"time": time, "site": site, "wind": wind}
    if form == "json":
        return (
            "{" + ", ".join(f'"{name}": {text}' for name, text in fields.items() if text is not None) + "}"
        ).encode()
    plain = [json.loads(text) if text[:1] == '"' else text for text in fields.values() if text is not None]
    return ",".join(f'"{text}"' if "," in text else text for text in plain).encode("utf-8", "surrogatepass")


def bad_lines(form):
    """Lines by kind: those that are always bad, and those that are bad once a stream has begun."""
    always = dict(NOISE)
    for name, instead in INSTEAD.items():
        for kind, text in instead.items():
            if form == "json" or (name, kind) not in NAMES_IN_CSV:
                always[f"{kind} as {name}"] = line(form, **{name: text})
    always["a date in 2044"] = line(form, time='"2044-01-01"')
    if form == "json":
        always["a field twice"] = line(form).replace(b'"wind"', b'"wind": 4.0, "wind"')
    return always, {kind: line(form, **fields) for kind, fields in OUT_OF_PLACE.items()}


def mixed(form, good, seed, most=3):
    """Good lines with bad ones of every kind between them, in any order; those that need a beginning after it."""
    rng = random.Random(seed)
    always, later = bad_lines(form)
    waiting = [line for _ in range(8) for line in always.values()]
    rng.shuffle(waiting)
    lines, n_bad = [], 0
    for place, line in enumerate(good):
        for _ in range(rng.randint(0, most)):
            kind = rng.choice(list(later.values())) if place > 12 and rng.random() < 0.1 else None
            if kind or waiting:
                lines.append(kind or waiting.pop())
                n_bad += 1
        lines.append(line.encode())
    return lines, n_bad
