"""Office documents behind a password ([MS-OFFCRYPTO]: agile and standard encryption, and the legacy formats' own)."""

from pathlib import Path

from msoffcrypto import OfficeFile
from msoffcrypto.exceptions import DecryptionError, InvalidKeyError
from msoffcrypto.format.ooxml import OOXMLFile

from ingestion.errors import Encrypted

_OLE = b"\xd0\xcf\x11\xe0"  # an Office document without encryption is a zip file, or a legacy one


def is_encrypted(path: Path) -> bool:
    """Whether the Office document at `path` is behind a password."""
    with path.open("rb") as file:
        return file.read(len(_OLE)) == _OLE and bool(OfficeFile(file).is_encrypted())


def write_decrypted(path: Path, to: Path, *, password: str) -> None:
    """Write what lies behind the password to the new file `to`.

    Raises:
        Encrypted: The password is wrong, or the document is encrypted in a way we cannot undo.
    """
    with path.open("rb") as file, to.open("xb") as out:
        document = OfficeFile(file)
        try:
            if not password:
                raise InvalidKeyError
            if isinstance(document, OOXMLFile):
                document.load_key(password=password, verify_password=True)
            else:  # these verify it always
                document.load_key(password=password)
            document.decrypt(out)
        except InvalidKeyError:
            raise Encrypted("The password is wrong; the document stays closed.") from None
        except DecryptionError:
            raise Encrypted("The document is encrypted in a way we cannot open; remove the password.") from None
