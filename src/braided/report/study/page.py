"""The page of a study."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from braided.datasets import EMBEDDED
from braided.errors import InputError
from braided.methods import METHODS, methods_on_samples
from braided.printable import counted, printable
from braided.report.common.page import Section, write_page
from braided.report.common.style import COLOURS
from braided.report.study.pictures import pictures
from braided.report.study.tables import findings, tables
from braided.study import Results


def write_report(studies: Sequence[Results], folder: Path) -> Path:
    """Write `index.html`, `report.md` and `figures/` into a folder, and return the path of the first."""
    if not studies:
        raise InputError("no studies: a report needs at least one")
    slugs: list[str] = []
    shown = [_study(results, _slug(results.name, slugs)) for results in studies]
    methods = [method for method in METHODS.values() if any(method in results.methods for results in studies)]
    return write_page(folder, "study", shown, studies=shown, methods=methods, colours=COLOURS)


def _slug(name: str, taken: list[str]) -> str:
    """Return a name for links and files that no other study has."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "study"
    slug = plain if plain not in taken else f"{plain}-{len(taken) + 1}"
    taken.append(slug)
    return slug


def _study(results: Results, slug: str) -> Section:
    about = results.about
    windows = f"{counted(results.windows, 'window')} of {about['length']} steps"
    count = counted(len(results.tasks), "stream")
    return Section(
        slug,
        printable(results.name),
        f"{count}, {windows}, {counted(len(results.methods), 'method')}",
        findings(results),
        tables(results),
        list(pictures(results)),
        _facts(results, windows),
        _command(results),
        bool(about["synthetic"]),
    )


def _facts(results: Results, windows: str) -> dict[str, str]:
    about = results.about
    splits = "; ".join(f"{name} the first {steps} steps" for name, steps in about["splits"].items())
    changes = "differences of logarithms, so growth rates" if about["logarithm"] else "differences from step to step"
    return {
        "Source and licence": printable(about["source"]),
        "Kind of data": "synthetic" if about["synthetic"] else "as given",
        "Streams": ", ".join(map(printable, results.tasks)),
        "Forecast": f"{changes}, one step ahead, from the last {about['lags']}",
        "Windows": f"{windows}, drawn with seed {about['seed']}",
        "Tuned on": splits,
        "Forgetting": f"σ among {', '.join(f'{value:g}' for value in about['forgetting'])}, per {about['per']}",
        "Version": f"braided {about['version']}",
        "Checksum of the data": f"SHA-256 {about['values'][:16]}…",
    }


def _command(results: Results) -> str:
    """Return the command that runs the same study again."""
    known = results.name in (*EMBEDDED, "synthetic")
    words = ["braided", "study", "--data", shlex.quote(results.name) if known else "FILE"]
    words += ["--windows", str(results.windows), "--seed", str(results.about["seed"])]
    if len(results.methods) < len(methods_on_samples()):
        words += ["--methods", ",".join(method.name for method in results.methods)]
    return " ".join(words)
