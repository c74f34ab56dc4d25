"""A parser process that answers the wrong question; run as `python -m tests.ingestion.hostile_locator`."""

import os

from ingestion.messages import Loaded, Located, framed, pack_reply, read_message, unpack_request
from ingestion.types import Extraction, MediaType


def main() -> None:
    """Answer a request for boxes with a text, and one for a text with boxes."""
    with os.fdopen(0, "rb") as requests, os.fdopen(os.dup(1), "wb") as replies:
        while (message := read_message(requests)) is not None:
            asked = unpack_request(message)
            wrong = Extraction(MediaType.TEXT, None, "text", (), ()) if asked.spans else Located(())
            for reply in (Loaded(), wrong):
                replies.write(framed(pack_reply(reply)))
            replies.flush()


if __name__ == "__main__":
    main()
