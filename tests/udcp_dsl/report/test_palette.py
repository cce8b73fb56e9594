"""The colours of oracles as the colour-blind see them: simulated by Machado et al. (2009), compared by CIEDE2000."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from udcp_dsl.report.look import _ORACLES, _OTHERS, TERMS, styles, variables

# Severity 1.0, on linear RGB.
_SEEN: dict[str, Any] = {
    "full colour": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
_WHITE = np.array([0.95047, 1.0, 1.08883])


def lab(colour: str, deficiency: str = "full colour") -> Any:
    """CIELAB (D65) of a colour of sRGB, as it is seen with a deficiency."""
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = _XYZ @ np.clip(np.array(_SEEN[deficiency]) @ linear, 0, 1) / _WHITE
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def ciede2000(one: Any, two: Any) -> float:
    """The difference of two colours in CIELAB, as Sharma, Wu and Dalal (2005) state it."""
    (l1, a1, b1), (l2, a2, b2) = one, two
    mean = (np.hypot(a1, b1) + np.hypot(a2, b2)) / 2
    g = 0.5 * (1 - np.sqrt(mean**7 / (mean**7 + 25.0**7)))
    a1, a2 = a1 * (1 + g), a2 * (1 + g)
    c1, c2 = np.hypot(a1, b1), np.hypot(a2, b2)
    h1, h2 = np.degrees(np.arctan2(b1, a1)) % 360, np.degrees(np.arctan2(b2, a2)) % 360
    turn = (h2 - h1 + 180) % 360 - 180
    dl, dc, dh = l2 - l1, c2 - c1, 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn / 2))
    lightness, chroma = (l1 + l2) / 2, (c1 + c2) / 2
    hue = ((h1 + h2 + 360) / 2 if abs(h1 - h2) > 180 else (h1 + h2) / 2) % 360

    def cosine(degrees: float) -> Any:
        return np.cos(np.radians(degrees))

    t = 1 - 0.17 * cosine(hue - 30) + 0.24 * cosine(2 * hue) + 0.32 * cosine(3 * hue + 6) - 0.2 * cosine(4 * hue - 63)
    off = (lightness - 50) ** 2
    sl, sc, sh = 1 + 0.015 * off / np.sqrt(20 + off), 1 + 0.045 * chroma, 1 + 0.015 * chroma * t
    rc = 2 * np.sqrt(chroma**7 / (chroma**7 + 25.0**7))
    rt = -rc * np.sin(np.radians(60 * np.exp(-(((hue - 275) / 25) ** 2))))
    return float(np.sqrt((dl / sl) ** 2 + (dc / sc) ** 2 + (dh / sh) ** 2 + rt * (dc / sc) * (dh / sh)))


# Rows of the table of test data by Sharma, Wu and Dalal.
@pytest.mark.parametrize(
    ("one", "two", "difference"),
    [
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, 2.5, 0), (73, 25, -18), 27.1492),
        ((50, -0.001, 2.49), (50, 0.0011, -2.49), 4.7461),
        ((22.7233, 20.0904, -46.694), (23.0331, 14.973, -42.5619), 2.0373),
        ((2.0776, 0.0795, -1.135), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_the_difference_is_that_of_the_standard(one: Any, two: Any, difference: float) -> None:
    assert ciede2000(one, two) == pytest.approx(difference, abs=1e-4)


def test_the_simulation_shows_the_fault_of_the_colours_before() -> None:
    """A grey and a pink that full colour vision tells apart are one colour with deuteranopia."""
    grey, pink = "#6a717a", "#b8387e"
    assert ciede2000(lab(grey), lab(pink)) > 20
    assert ciede2000(lab(grey, "deuteranopia"), lab(pink, "deuteranopia")) < 5


@pytest.mark.parametrize("deficiency", _SEEN)
@pytest.mark.parametrize("on", ["light", "dark"])
@pytest.mark.parametrize("of", ["oracles", "terms"])
def test_any_two_differ(of: str, deficiency: str, on: str) -> None:
    colours = [style.colour for style in _ORACLES.values()] if of == "oracles" else list(TERMS)
    seen = {colour.variable: lab(getattr(colour, on), deficiency) for colour in colours}
    differences = {(a, b): ciede2000(seen[a], seen[b]) for a, b in combinations(seen, 2)}
    assert min(differences.values()) >= 13, min(differences, key=lambda pair: differences[pair])


def test_every_oracle_has_a_mark_of_its_own() -> None:
    found = styles([*_ORACLES, "a", "b", "c", "d"]).values()
    assert len({style.path for style in found}) == len(_ORACLES) + len(_OTHERS)


def contrast(one: str, two: str) -> float:
    """Of two colours, as WCAG 2 defines it."""
    found = []
    for colour in (one, two):
        rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        found.append(float(_XYZ[1] @ linear))
    return (max(found) + 0.05) / (min(found) + 0.05)


def colours_of(package: str, sheet: str, dark: bool) -> dict[str, str]:
    """The variables of a page, in one scheme."""
    text = (files(package) / sheet).read_text(encoding="utf-8")
    first, second = re.findall(r":root \{(.*?)\}", text)[:2]
    own = first + second if dark else first
    return dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6})", variables(dark) + own))


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize(
    ("package", "sheet"), [("udcp_dsl.report", "page.css"), ("udcp_dsl.studio", "page/studio.css")]
)
def test_what_is_read_and_what_is_used_stands_out(package: str, sheet: str, dark: bool) -> None:
    colours = colours_of(package, sheet, dark)
    for ground in ("--card", "--page", "--soft"):
        for text in ("--ink", "--muted", "--link", "--good", "--bad"):
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
        # Borders of fields, marks of absence, thumbs of sliders.
        assert contrast(colours["--line"], colours[ground]) >= 3, ground
    for drawn in (*(style.colour for style in _ORACLES.values()), *TERMS):
        assert contrast(colours[drawn.variable], colours["--card"]) >= 3, drawn
