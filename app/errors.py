"""Errors the application raises on purpose. `app.api.errors` maps each class to an HTTP status, the nearest base first.

AppError
├── NotFound                     404
│   └── InvitationNotValid
├── Conflict                     409
│   ├── RequestRunning
│   └── AnswerNotKept
├── Unauthenticated              401
├── Forbidden                    403
│   └── CrossSiteRequest
├── InvalidRequest               422
│   ├── UnsupportedParameter     400
│   ├── IdempotencyKeyReused
│   ├── UrlNotAllowed
│   └── UrlNotFetched
├── MalformedRequest             400
├── TooLarge                     413
├── TooSlow                      408
├── RateLimited                  429
├── BudgetExceeded               429
├── ServerFull                   503
├── DeadlinePassed               504
├── StorageFull                  507
├── StoreUnavailable             503
├── ProviderUnavailable          503
├── SetupError                   503
│   └── ModelsLoading
└── ServerShutdown               503
"""


class AppError(Exception):
    """Base of every error the application raises on purpose. Its message may be shown to the caller."""


# The caller, and the objects it names


class NotFound(AppError):
    """The object does not exist, or is hidden from this caller."""


class InvitationNotValid(NotFound):
    """An invitation is unknown, used, revoked or expired; the message does not say which."""

    def __init__(self) -> None:
        super().__init__(
            "This link is not valid: it was used before, has expired, or was taken back. "
            "Ask the administrator who sent it for another."
        )


class Conflict(AppError):
    """The request contradicts the present state of an object."""


class RequestRunning(Conflict):
    """A request with the same idempotency key is not finished yet; retry in a moment."""


class AnswerNotKept(Conflict):
    """A request with the same idempotency key succeeded, and its response cannot be replayed."""


class TermsNotAccepted(Conflict):
    """The licence of a model has terms that have to be accepted first."""


class Unauthenticated(AppError):
    """The key is missing, unknown, revoked or expired."""


class Forbidden(AppError):
    """The key is valid, but its role or its collections do not allow the request."""


class CrossSiteRequest(Forbidden):
    """The request carries a session cookie and was not made by our own page."""


# The request


class InvalidRequest(AppError):
    """A well-formed request for something impossible. `param` names the offending field."""

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


class UnsupportedParameter(InvalidRequest):
    """A parameter of OpenAI's protocol that Footnote does not implement; rejected by name, never ignored."""


class IdempotencyKeyReused(InvalidRequest):
    """The idempotency key was used before with another payload."""


class UrlNotAllowed(InvalidRequest):
    """The URL must not be fetched: web pages are turned off, or it leads to an address that is not public."""


class UrlNotFetched(InvalidRequest):
    """The URL may be fetched, and no document came back."""


class MalformedRequest(AppError):
    """The request breaks HTTP or multipart framing."""


class TooLarge(AppError):
    """The upload or body is above the size limit."""


class TooSlow(AppError):
    """The request body arrives too slowly."""


# Limits


class RateLimited(AppError):
    """A rate limit of a key, a tenant or an address is exhausted; retry after `retry_after_s` seconds.

    `name` is the limit's, `limit` its size in a window of `window_s` seconds (None: at once).
    """

    def __init__(self, message: str, *, name: str, limit: int, window_s: int | None, retry_after_s: int) -> None:
        super().__init__(message)
        self.name = name
        self.limit = limit
        self.window_s = window_s
        self.retry_after_s = retry_after_s


class BudgetExceeded(AppError):
    """A hard budget has no room for a call. Amounts are tokens or, where `unit` is `cost`, pico-units of money.

    `reset_at` is the Unix second at which the next period with room for the call begins, and `wait_s` the seconds until
    then by the ledger's clock; None: no period has room.
    """

    def __init__(
        self,
        *,
        budget_id: str,
        unit: str,
        limit: int,
        used: int,
        reserved: int,
        reset_at: int | None,
        wait_s: float | None,
        message: str = "A budget has no room for this request.",
    ) -> None:
        super().__init__(message)
        self.budget_id = budget_id
        self.unit = unit
        self.limit = limit
        self.used = used
        self.reserved = reserved
        self.reset_at = reset_at
        self.wait_s = wait_s


class ServerFull(AppError):
    """The queue is full, or all threads for such a request are in use; retry after `retry_after_s` seconds."""

    def __init__(self, message: str = "The server has as many requests as it can take.", *, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class DeadlinePassed(AppError):
    """The answer was not finished before its deadline."""

    def __init__(self) -> None:
        super().__init__("The answer was not finished before its deadline.")


# The server


class StorageFull(AppError):
    """The disk has no room for this write."""


class StoreUnavailable(AppError):
    """The database cannot be reached or is locked, or the disk fails; retry later."""


class ProviderUnavailable(AppError):
    """The OpenID provider cannot be reached, or its response breaks the protocol."""


class SetupError(AppError):
    """The installation is not ready to serve; the message says what to do."""


class ModelsLoading(SetupError):
    """The models are not loaded yet; retry in a moment."""

    def __init__(self) -> None:
        super().__init__("The models are being loaded; try again in a few seconds.")


class ServerShutdown(AppError):
    """The server is shutting down: it accepts no request, and ends those that run."""

    def __init__(self) -> None:
        super().__init__("The server is shutting down; try again in a moment.")
