"""Files from the server, passed on as they come."""

from typing import Any, BinaryIO

import httpx

from app.client import Client, Refused, refused


def download_csv(client: Client, path: str, params: dict[str, Any], out: BinaryIO) -> None:
    """Write the CSV of a report to `out`, byte for byte.

    Raises:
        Refused: The server refused, cannot be reached, or broke off; what was written then is not whole.
    """
    try:
        with client.http.stream("GET", path, params=params, headers={"Accept": "text/csv"}) as response:
            if response.is_error:
                response.read()
                raise refused(response)
            for piece in response.iter_bytes():
                out.write(piece)
    except httpx.HTTPError as error:
        raise Refused(f"The server broke off or cannot be reached: {type(error).__name__}.") from None
    out.flush()
