"""Makes src/font/inter.woff2 from the official file: Latin with all its extensions that languages of today use, and the
weights of the panel. The features that show other characters than the text has, such as an arrow for `->`, stay out.

    npm pack inter-ui@4.1.1 && tar xzf inter-ui-4.1.1.tgz package/variable/InterVariable.woff2
    pip install fonttools==4.68.0 brotli
    python3 scripts/font.py package/variable/InterVariable.woff2
"""

import io
import sys
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont
from fontTools.varLib import instancer

CHARACTERS = (
    "20-7e,a0-17f,18f,192,1a0-1a1,1af-1b0,1cd-1dc,1fa-1ff,218-21b,259,2bb-2bc,2c6-2c7,2d8-2dd,300-304,306-30c,31b,323,"
    "326-329,1e80-1e85,1e9e,1ea0-1ef9,2000-206f,20a0-20c0,2116,2122,2190-2193,2212,2215,2248,2260,2264-2265,fffd"
)
FEATURES = ["kern", "mark", "mkmk", "ccmp", "locl", "tnum"]

ends = ([int(end, 16) for end in part.split("-")] for part in CHARACTERS.split(","))
characters = {code for first, *last in ends for code in range(first, (last or [first])[0] + 1)}
font = TTFont(sys.argv[1], recalcTimestamp=False)
options = subset.Options(layout_features=FEATURES, hinting=False, notdef_outline=True, recalc_timestamp=False)
options.name_IDs = [0, 1, 2, 3, 4, 5, 6, 13, 14]
subsetter = subset.Subsetter(options)
subsetter.populate(unicodes=characters)
subsetter.subset(font)
font.flavor = None
small = io.BytesIO()
font.save(small)
font = instancer.instantiateVariableFont(TTFont(small, recalcTimestamp=False), {"opsz": 14, "wght": (400, 700)})
font.flavor = "woff2"
font.save(Path(__file__).parent.parent / "src/font/inter.woff2")
