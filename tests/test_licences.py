"""Every installed dependency has a licence that permits use, change and redistribution."""

import re
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution

import pytest
from packaging.requirements import Requirement

# Whole words: LGPL, which psycopg has, is fine for a library that is imported.
REFUSED = re.compile(
    r"(?<![L\w])A?GPL|\bSSPL\b|\bServer Side Public|\bBUSL\b|Business Source|Commons Clause|non-?commercial",
    re.IGNORECASE,
)
EXTRAS = ("cpu", "postgres", "ocr", "oidc", "mcp", "otel", "s3")
# `MIT OR GPL` lets its user choose
CHOICE = re.compile(r"\bOR\b")


def installed(
    name: str, extras: tuple[str, ...] = (), seen: "set[tuple[str, str]] | None" = None
) -> Iterator[Distribution]:
    """A distribution and everything it requires here, each once; what is not installed is left out."""
    seen = set() if seen is None else seen
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return
    if (name.lower(), "") not in seen:
        seen.add((name.lower(), ""))
        yield found
    for extra in ("", *extras):
        if extra and (name.lower(), extra) in seen:
            continue
        seen.add((name.lower(), extra))
        for line in found.requires or ():
            needed = Requirement(line)
            wanted = needed.marker is None or needed.marker.evaluate({"extra": extra})
            if wanted and (needed.name.lower(), "") not in seen:
                yield from installed(needed.name, tuple(needed.extras), seen)


def licence_of(found: Distribution) -> str:
    """As the package declares it: SPDX where it says so, else its classifiers, else its free text's first line."""
    metadata = found.metadata
    (expression, *_) = metadata.get_all("License-Expression") or [""]
    classifiers = [text for text in metadata.get_all("Classifier") or () if text.startswith("License ::")]
    (free, *_) = metadata.get_all("License") or [""]
    return expression or "; ".join(classifiers) or free.strip().partition("\n")[0]


def test_the_list_is_of_everything_that_runs():
    names = {found.metadata["Name"].lower() for found in installed("footnote-rag", EXTRAS)}

    assert {"torch", "transformers", "fastapi", "sqlalchemy", "faiss-cpu", "psycopg"} <= names
    assert "pytest" not in names


def test_no_licence_forbids_use_or_taints_what_it_is_used_in():
    refused = {
        found.metadata["Name"]: licence
        for found in installed("footnote-rag", EXTRAS)
        if REFUSED.search(licence := licence_of(found)) and not CHOICE.search(licence)
    }

    assert refused == {}


@pytest.mark.parametrize(
    "licence",
    [
        "AGPL-3.0",
        "GPL-2.0-or-later",
        "License :: OSI Approved :: GNU General Public License v3 (GPLv3)",
        "CC-BY-NC 4.0 NonCommercial",
    ],
)
def test_refused_licences_are_recognised(licence):
    assert REFUSED.search(licence)


@pytest.mark.parametrize(
    "licence",
    ["Apache-2.0", "MIT", "LGPL-3.0-only", "License :: OSI Approved :: GNU Lesser General Public License v3 (LGPLv3)"],
)
def test_permitted_licences_are_not_matched_as_refused(licence):
    assert not REFUSED.search(licence)
