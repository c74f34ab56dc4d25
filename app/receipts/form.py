"""What a verifier reads of a receipt and of a set of keys: their members, checked for form."""

import json
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from app.receipts.signing import NotSigned, key_in

Amount = Annotated[str, Field(pattern=r"^-?[0-9]{1,20}\.[0-9]{12}$")]
"""An amount of money as a decimal string with 12 decimals."""

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_Count = Annotated[int, Field(ge=-(2**53), le=2**53)]
_Offset = Annotated[int, Field(ge=0, le=2**53)]


class NotAReceipt(ValueError):
    """A file is no receipt, or no set of keys; the message says why in one sentence."""


class _Form(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class FormOfFootnote(_Form):
    """A footnote; one whose document is withheld has no range and no words."""

    index: int
    document_id: str
    version: int
    start_char: _Offset | None = None
    end_char: _Offset | None = None
    cited_text: str | None = None


class FormOfDocument(_Form):
    """A cited version with its hashes."""

    document_id: str
    version: int
    filename: str
    sha256: Digest
    text_sha256: Digest


class FormOfWithheld(_Form):
    """A cited version of which the receipt tells nothing."""

    document_id: str
    version: int
    reason: Literal["deleted", "version_deleted", "not_readable"]


class FormOfPrice(_Form):
    """The price of one token."""

    meter: str
    cost_per_token: Amount


class FormOfRow(_Form):
    """A row of the bill."""

    event_id: str
    adjustment_id: str | None
    operation: str
    input_tokens: _Count
    input_cached_tokens: _Count
    output_tokens: _Count
    prices: list[FormOfPrice]
    cost: Amount | None
    currency: str


class FormOfTotal(_Form):
    """The sum of a bill's rows."""

    cost: Amount | None
    currency: str | None
    input_tokens: _Count
    output_tokens: _Count
    rows_without_price: _Count


class FormOfBill(_Form):
    """A bill."""

    rows: list[FormOfRow]
    total: FormOfTotal


class FormOfReceipt(_Form):
    """A receipt."""

    format: Literal["footnote-receipt/1"]
    id: str
    issued_at: Annotated[AwareDatetime, Field(strict=False)]
    footnote_version: str
    question: str
    footnotes: list[FormOfFootnote]
    documents: list[FormOfDocument]
    withheld: list[FormOfWithheld]
    bill: FormOfBill
    not_recorded: list[str]


class FormOfKey(_Form):
    """A public key of a set; the times are those of Footnote's own sets."""

    kid: str
    created_at: Annotated[AwareDatetime | None, Field(strict=False)] = None
    retired_at: Annotated[AwareDatetime | None, Field(strict=False)] = None


def read_object(raw: bytes, what: str) -> dict[str, Any]:
    """A JSON object (RFC 8259) in which no name is twice, so that it says one thing to every reader.

    Raises:
        NotAReceipt: It is none; `what` names it.
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(made := dict(pairs)) != len(pairs):
            raise ValueError("a name is there twice")
        return made

    def never(name: str) -> Any:
        raise ValueError(f"{name} is no number")

    try:
        read = json.loads(raw.decode(), object_pairs_hook=once, parse_constant=never)
    except (ValueError, RecursionError):
        raise NotAReceipt(f"{what} is no JSON, or has a name twice in one object.") from None
    if not isinstance(read, dict):
        raise NotAReceipt(f"{what} is no JSON object.")
    return read


def receipt_in(fields: dict[str, Any]) -> FormOfReceipt:
    """The receipt in a JSON object.

    Raises:
        NotAReceipt: A member is missing or of another form.
    """
    try:
        return FormOfReceipt.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise NotAReceipt(
            f"The file is no receipt of the form footnote-receipt/1: {place} is not as it says."
        ) from None


def keys_in(fields: dict[str, Any]) -> dict[bytes, FormOfKey]:
    """The Ed25519 keys of a JWK set, or the one key of a JWK; keys of other kinds are left out.

    Raises:
        NotAReceipt: It is neither.
    """
    listed = fields.get("keys", [fields])
    if not isinstance(listed, list):
        raise NotAReceipt("The file of keys is no JWK set.")
    found = {}
    for one in listed:
        try:
            found[key_in(one)] = FormOfKey.model_validate(one)
        except NotSigned:
            continue
        except ValidationError:
            raise NotAReceipt("A key in the file of keys has a time that is none.") from None
    if not found:
        raise NotAReceipt("The file of keys has no Ed25519 key.")
    return found
