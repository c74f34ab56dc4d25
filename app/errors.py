"""What the application refuses or cannot do, in domain words; `app.api.errors` turns them into statuses."""


class AppError(Exception):
    """Anything the application raises on purpose. The message is fit to show to a caller."""


class NotFound(AppError):
    """The thing does not exist, or not for this caller."""


class Conflict(AppError):
    """The request contradicts what is there."""


class Unauthenticated(AppError):
    """No key, or one that is unknown, revoked or expired."""


class Forbidden(AppError):
    """The key is good, but its role or collections do not allow this."""


class CrossSiteRequest(Forbidden):
    """A request with a session cookie that our own page did not make."""


class ProviderUnavailable(AppError):
    """The OpenID provider cannot be reached, or does not answer as one."""


class InvalidRequest(AppError):
    """A well-formed request that asks for something impossible. `param` names the offending field."""

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


class TooLarge(AppError):
    """An upload above the size limit."""


class StorageFull(AppError):
    """The disk has no room for this write."""


class StoreUnavailable(AppError):
    """The database cannot be reached or is locked; come back later."""


class BudgetExceeded(AppError):
    """A hard budget has no room for a call. Amounts are tokens or, where `unit` is `cost`, pico-units of money.

    `reset_at` is the Unix second at which its next period begins, with room for the call; None: it never has.
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
        message: str = "A budget has no room for this request.",
    ) -> None:
        super().__init__(message)
        self.budget_id = budget_id
        self.unit = unit
        self.limit = limit
        self.used = used
        self.reserved = reserved
        self.reset_at = reset_at


class RateLimited(AppError):
    """A key, a tenant or an address has taken all a limit allows; more in `retry_after_s` seconds.

    `name` is the limit's, `limit` its size in a window of `window_s` seconds (None: at once).
    """

    def __init__(self, message: str, *, name: str, limit: int, window_s: int | None, retry_after_s: int) -> None:
        super().__init__(message)
        self.name = name
        self.limit = limit
        self.window_s = window_s
        self.retry_after_s = retry_after_s


class ServerFull(AppError):
    """More requests wait than may; come back after `retry_after_s` seconds."""

    def __init__(self, *, retry_after_s: int) -> None:
        super().__init__("The server has as many requests as it can take.")
        self.retry_after_s = retry_after_s


class DeadlinePassed(AppError):
    """The time an answer may take has run out."""

    def __init__(self) -> None:
        super().__init__("The answer was not finished before its deadline.")


class SetupError(AppError):
    """The installation is not ready to serve; the message says what to do."""


class ModelsLoading(SetupError):
    """The models are not loaded yet; come back in a moment."""

    def __init__(self) -> None:
        super().__init__("The models are being loaded; try again in a few seconds.")


class ServerShutdown(AppError):
    """The server stops: it takes nothing new and ends what runs."""

    def __init__(self) -> None:
        super().__init__("The server is shutting down; try again in a moment.")


class UnsupportedParameter(InvalidRequest):
    """A parameter of a foreign protocol that we do not honour; refused by name, never ignored."""


class Malformed(AppError):
    """The request breaks HTTP or multipart framing."""


class RequestRunning(Conflict):
    """A request with the same idempotency key is not finished yet; come back in a moment."""


class AnswerNotKept(Conflict):
    """A request with the same idempotency key has succeeded, and its answer cannot be shown again."""


class IdempotencyKeyReused(InvalidRequest):
    """An idempotency key that came with another payload before."""


class UrlNotAllowed(InvalidRequest):
    """An address that we do not fetch: web pages are turned off, or it leads to where we do not go."""


class UrlNotFetched(InvalidRequest):
    """An address that we may fetch, and that gave us no document."""


class TooSlow(AppError):
    """A request body that hardly comes."""
