"""Which built page the tests are served: `app/web/dist`, or the folder that the environment's WEB_DIST names.

It is chosen when this is imported, for an application's assets are mounted when it is made.
"""

import os
from pathlib import Path

from app.api import web_page

if "WEB_DIST" in os.environ:
    web_page._BUILT = Path(os.environ["WEB_DIST"])
