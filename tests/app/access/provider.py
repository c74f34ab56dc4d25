"""An OpenID provider on a loopback port, that lies where it is told to."""

import base64
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

KEY = RSAKey.generate_key(2048, {"kid": "k1"})
STRANGER = RSAKey.generate_key(2048, {"kid": "k1"})
CLIENT_ID, CLIENT_SECRET = "footnote", "the:client secret"


class Provider:
    """One user, `subject`, is signed in at once. What tests change: claims, the signing key, the description."""

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer
        self.subject = "s-1"
        self.claims: dict[str, Any] = {"email": "ada@example.org", "email_verified": True}
        self.signed_by = KEY
        self.description: dict[str, Any] = {}
        self.failing = False
        self.exchanges = 0
        self.keys_read = 0
        self._asked: dict[str, dict[str, str]] = {}

    def authorize(self, url: str) -> dict[str, str]:
        """What the browser brings back to the callback."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256"
        code = f"code-{len(self._asked)}"
        self._asked[code] = asked
        return {"code": code, "state": asked["state"]}

    def access_token(self, audience: object, *, key: RSAKey = KEY, kid: str = "k1", **claims: object) -> str:
        """A token of the user for this audience; a claim of None is left out."""
        now = int(time.time())
        said = {"iss": self.issuer, "sub": self.subject, "aud": audience, "exp": now + 300, "iat": now, **claims}
        kept = {name: value for name, value in said.items() if value is not None}
        return jwt.encode({"alg": "RS256", "kid": kid, "typ": "at+jwt"}, kept, key)

    def answer(self, path: str, form: dict[str, str], authorization: str) -> tuple[int, object]:
        if self.failing:
            return 500, {"error": f"secret trouble {form}"}
        if path == "/.well-known/openid-configuration":
            return 200, {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/jwks",
                **self.description,
            }
        if path == "/jwks":
            self.keys_read += 1
            return 200, {"keys": [KEY.as_dict(private=False)]}
        assert path == "/token"
        return self._token(form, authorization)

    def _token(self, form: dict[str, str], authorization: str) -> tuple[int, object]:
        self.exchanges += 1
        asked = self._asked.pop(form["code"], None)  # a code is good once
        challenge = (
            base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).decode().rstrip("=")
        )
        basic = "Basic " + base64.b64encode(b"footnote:the%3Aclient%20secret").decode()
        if asked is None or asked["code_challenge"] != challenge or authorization != basic:
            return 400, {"error": "invalid_grant"}
        assert asked["redirect_uri"] == form["redirect_uri"]
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "sub": self.subject,
            "aud": CLIENT_ID,
            "exp": now + 300,
            "iat": now,
            "nonce": asked["nonce"],
            **self.claims,
        }
        token = jwt.encode({"alg": "RS256", "kid": "k1"}, claims, self.signed_by)
        return 200, {"id_token": token, "access_token": "a", "token_type": "Bearer"}


@contextmanager
def serving() -> Iterator[Provider]:
    """A provider that answers until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer({})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self._answer({name: values[0] for name, values in parse_qs(body).items()})

        def _answer(self, form: dict[str, str]) -> None:
            status, body = provider.answer(self.path, form, self.headers.get("Authorization", ""))
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in http.server
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider = Provider(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.01), daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
