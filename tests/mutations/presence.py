"""`python -m tests.mutations.presence`: bugs of processes beside each other, planted; each must fail a test."""

from tests.mutations.planting import Bug, main

_PRESENCE = "app/db/presence.py"
_JUDGED = ("tests/app/db/test_presence.py",)
_BURIED = ("tests/app/server/test_sharing.py",)
_BESIDE = ("tests/app/server/test_neighbours.py",)
_KILLED = ("tests/scale/test_dead_workers.py",)
_LIMITED = ("tests/scale/test_shared_limits.py",)
_COUNTED = ("tests/app/admission/test_shared_rates.py",)
_LATE = ("tests/app/usage/ledger/test_late_counts.py",)
_SEALED = ("tests/app/db/test_sealed_passwords.py",)
_PASSWORDS = "app/db/sealed_passwords.py"
_GUESSED = ("tests/app/admission/test_shared_logins.py",)
_LOGINS = "app/admission/shared_logins.py"
_RATE_ROWS = "app/admission/rate_rows.py"
_SHARING = "app/server/sharing.py"

BUGS = (
    Bug(
        "a start takes over what live processes work on",
        _PRESENCE,
        "    return sa.not_(sa.exists().where(process.c.boot_id == boot, _ALIVE))\n",
        "    return sa.not_(sa.exists().where(process.c.boot_id == boot, process.c.ended_at.is_not(None)))\n",
        _BURIED,
    ),
    Bug(
        "who ended lives for ever",
        _PRESENCE,
        "    return sa.not_(sa.exists().where(process.c.boot_id == boot, _ALIVE))\n",
        "    return sa.not_(sa.exists().where(process.c.boot_id == boot))\n",
        _BURIED,
    ),
    Bug(
        "an observer that stood still buries the others",
        _PRESENCE,
        "        if self._asked is None or told - self._asked > self._gap_s:\n",
        "        if self._asked is None:\n",
        _JUDGED,
    ),
    Bug(
        "the time that reading takes is held against the watched",
        _PRESENCE,
        "else (beat, told)\n",
        "else (beat, asked)\n",
        _JUDGED,
    ),
    Bug(
        "a process is buried although it has beaten since",
        _PRESENCE,
        "process.c.boot_id == dead.boot_id, process.c.beat == dead.beat, _ALIVE\n",
        "process.c.boot_id == dead.boot_id, _ALIVE\n",
        _JUDGED,
    ),
    Bug(
        "the buried process goes on",
        _PRESENCE,
        "        if not alive:\n",
        "        if not alive and not beats:\n",
        _JUDGED,
    ),
    Bug(
        "a burial overtakes a claim",
        _PRESENCE,
        ".where(*_MINE).with_for_update(read=True, key_share=True)\n",
        ".where(*_MINE)\n",
        _JUDGED,
    ),
    Bug(
        "a claim holds up its own process's beats",
        _PRESENCE,
        ".with_for_update(read=True, key_share=True)\n",
        ".with_for_update()\n",
        _JUDGED,
    ),
    Bug(
        "what a stopped process has locked stays locked",
        _PRESENCE,
        "                end_sessions(connection, session_name(dead.boot_id))\n",
        "                pass\n",
        _JUDGED,
    ),
    Bug(
        "what the buried take before they know it is lost for good",
        _PRESENCE,
        "        if self._swept is None or asked - self._swept >= _SWEEP_SECONDS:\n",
        "        if self._swept is None:\n",
        _JUDGED,
    ),
    Bug(
        "one that is alone serves beside others",
        "app/db/server_lock.py",
        "        require_alone(database)\n",
        "        pass\n",
        _JUDGED,
    ),
    Bug(
        "others serve beside one that is alone",
        _PRESENCE,
        "            if not share_lock(connection, SERVER_LOCK):\n",
        "            if not share_lock(connection, self._boot_id):\n",
        _JUDGED,
    ),
    Bug(
        "the buried claim",
        "app/db/jobs.py",
        "                if not self._may_claim(connection):\n",
        "                if not connection:\n",
        _BURIED,
    ),
    Bug(
        "what the dead kept of a document that is given up is not paid for",
        _SHARING,
        """        recovered = ledger.recover_in(connection, gone)
        if orphans:
            jobs.requeue_orphans_in(connection, orphans)
""",
        """        if orphans:
            jobs.requeue_orphans_in(connection, orphans)
        recovered = ledger.recover_in(connection, gone)
""",
        _BURIED,
    ),
    Bug(
        "two living processes work on one request",
        "app/db/idempotency.py",
        "            works = found.status in {None, _APPLIED} and self._works(connection, request_id, found.boot_id)\n",
        "            works = found.status in {None, _APPLIED} and found.boot_id == self._boot_id\n",
        _BURIED,
    ),
    Bug(
        "a document is acknowledged whose original is deleted",
        "app/db/originals.py",
        ".rowcount and name in _begun:\n",
        ".rowcount and not name:\n",
        _BURIED,
    ),
    Bug(
        "an original that was put too late stays for ever",
        "app/documents/files.py",
        """        except BaseException:
            with suppress(*_DATABASE_REFUSES):  # whether a row names it is then not known: the next start decides
                self._sort_out([name])
""",
        """        except BaseException:
            with suppress(*_DATABASE_REFUSES):  # whether a row names it is then not known: the next start decides
                if self._rows.is_open(name):
                    self._sort_out([name])
""",
        _BURIED,
    ),
    Bug(
        "real processes: a start takes over what live ones work on",
        _PRESENCE,
        "    return sa.not_(sa.exists().where(process.c.boot_id == boot, _ALIVE))\n",
        "    return sa.not_(sa.exists().where(process.c.boot_id == boot, process.c.ended_at.is_not(None)))\n",
        _KILLED,
    ),
    Bug(
        "real processes: nobody looks for the dead",
        _PRESENCE,
        "            self._bury(dead)\n",
        "            logger().info(dead.boot_id)\n",
        _KILLED,
    ),
    Bug(
        "real processes: the buried one serves on",
        _SHARING,
        "            on_buried=stop_this_process,\n",
        "            on_buried=lambda: None,\n",
        _KILLED,
    ),
    Bug(
        "real processes: who ends does not say so",
        _SHARING,
        "                presence.end()\n",
        "                pass\n",
        _KILLED,
    ),
    Bug(
        "calls are settled by the clocks of their processes",
        "app/usage/ledger/ledger.py",
        "        if self._clock_in is None:\n",
        "        if self._clock_in is not self._journal:\n",
        ("tests/app/usage/ledger/test_ledger.py",),
    ),
    Bug(
        "only some of what is missing is named",
        _SHARING,
        """needs {'; '.join(missing)}.""",
        """needs {missing[0]}.""",
        _BESIDE,
    ),
    Bug(
        "two first starts begin with an embedder each",
        "app/db/index_generations.py",
        """            advisory_lock(connection, "generations")  # two first starts make one generation\n""",
        "",
        _BESIDE,
    ),
    Bug(
        "each start has the sums in its own time zone",
        _SHARING,
        "            rollups.require_zone()\n",
        "            rollups.ensure_zone()\n",
        _BESIDE,
    ),
    Bug(
        "each process delivers every alert",
        _PRESENCE,
        "        return connection.execute(_FIRST).scalar() == boot_id\n",
        "        return connection.execute(_FIRST).scalar() is not None and bool(boot_id)\n",
        _BESIDE,
    ),
    Bug(
        "what a living process has open is taken for an orphan",
        "app/usage/reconciliation/checks.py",
        ".where(is_open, gone(event.boot_id))\n",
        ".where(is_open)\n",
        ("tests/app/usage/reconciliation/test_books_of_neighbours.py",),
    ),
    Bug(
        "what a living process has counted has no bound",
        "app/usage/reconciliation/engine_checks.py",
        "ok=engine <= ledger + reserved, expected=engine",
        "ok=True, expected=engine",
        ("tests/app/usage/reconciliation/test_books_of_neighbours.py",),
    ),
    Bug(
        "real processes: shared limits are counted without a lock",
        _RATE_ROWS,
        """[f"rate:{name}" for name in locks]""",
        """[f"rate:{name}" for name in locks[:0]]""",
        _LIMITED,
    ),
    Bug(
        "real processes: the dead keep their seats",
        _RATE_ROWS,
        ".where(gone(rate_seat.c.boot_id))\n",
        ".where(gone(rate_seat.c.boot_id), sa.false())\n",
        _LIMITED,
    ),
    Bug(
        "a shared window is a tenth of a second shorter than one in memory",
        _RATE_ROWS,
        "        return self.grain - _GRAINS\n",
        "        return self.grain - _GRAINS + 1\n",
        _COUNTED,
    ),
    Bug(
        "a client that leaves while it is counted keeps a seat",
        "app/admission/shared_rates.py",
        "            counting.add_done_callback(self._abandoned)\n",
        "",
        _COUNTED,
    ),
    Bug(
        "real processes: guesses are counted by each process for itself",
        _LOGINS,
        "            self._note(network, known)\n        if known is not None and ",
        "            self._note(network, known)\n        if False and ",
        _LIMITED,
    ),
    Bug(
        "guesses at the same moment are counted beyond the limit",
        _LOGINS,
        "locks=[counter])\n",
        "locks=[])\n",
        _GUESSED,
    ),
    Bug(
        "every guess of a refused address asks the database",
        _LOGINS,
        "if known is None or known.refused_until <= self._monotonic():\n",
        "if True:\n",
        _GUESSED,
    ),
    Bug(
        "good credentials are asked about at each request",
        _LOGINS,
        "        if self._own.trusts(address, credentials):\n            return\n",
        "",
        _GUESSED,
    ),
    Bug(
        "exact counts that come late are forgotten",
        "app/usage/ledger/ledger.py",
        "            if self._late is not None and ",
        "            if False and self._late is not None and ",
        _LATE,
    ),
    Bug(
        "late counts correct what was embedded again",
        "app/usage/ledger/ledger.py",
        " and row.operation != Operation.EMBED_DOC:\n",
        ":\n",
        _LATE,
    ),
    Bug(
        "late counts correct a call twice",
        "app/usage/ledger/adjustments.py",
        """ or any(one.kind == "correction" for one in adjusted):\n""",
        ":\n",
        _LATE,
    ),
    Bug(
        "late counts undo a new price",
        "app/usage/ledger/adjustments.py",
        """adjusted[0].price_ids if adjusted else row["price_ids"]""",
        """row["price_ids"]""",
        _LATE,
    ),
    Bug(
        "the sweep takes the passwords of jobs that wait",
        _PASSWORDS,
        "sa.or_(sa.not_(waits), old)",
        "sa.or_(sa.true(), old)",
        _SEALED,
    ),
    Bug(
        "real processes: a password is kept when its job has ended",
        _PASSWORDS,
        "            connection.execute(sa.delete(job_secret).where(job_secret.c.job_id == job_id))\n",
        "            pass\n",
        ("tests/scale/test_passwords.py",),
    ),
    Bug(
        "a password of two days ago still opens its file",
        _PASSWORDS,
        "row is None or row.kept_at < clock_of(connection) - _SECONDS",
        "row is None",
        _SEALED,
    ),
    Bug(
        "passwords are sealed with a key that everybody has",
        _PASSWORDS,
        "derive(secret.get_secret_value().encode())",
        'derive(b"footnote")',
        _SEALED,
    ),
)


if __name__ == "__main__":
    raise SystemExit(main(BUGS, module="tests.mutations.presence", description=__doc__))
