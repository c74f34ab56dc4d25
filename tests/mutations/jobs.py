"""`python -m tests.mutations.jobs`: ten bugs of claims, planted one by one; each must fail a test."""

from tests.mutations.planting import Bug, main

_CLAIMS = "tests/app/db/test_claims.py"
_WORKERS = "tests/app/jobs/test_two_processes.py"

BUGS = (
    Bug(
        "no fence: a job that runs is anybody's",
        "app/db/job_queue.py",
        "    return [each for each in jobs if running.get(each.id) == (each.boot_id, each.claim)]\n",
        "    return [each for each in jobs if each.id in running]\n",
        (_CLAIMS,),
    ),
    Bug(
        "half a fence: whoever claims a job again in the same process is its last holder too",
        "app/db/job_queue.py",
        "    return [each for each in jobs if running.get(each.id) == (each.boot_id, each.claim)]\n",
        "    return [each for each in jobs if running.get(each.id, (None,))[0] == each.boot_id]\n",
        (_CLAIMS,),
    ),
    Bug(
        "a forgotten claim is handed out again",
        "app/db/jobs.py",
        "        claim=sa.case((job.c.claim < _HIGHEST, _HIGHEST), else_=job.c.claim) + 1,\n",
        "        claim=job.c.claim + 1,\n",
        (_CLAIMS,),
    ),
    Bug(
        "a lost job is billed twice",
        "app/jobs/outcomes.py",
        "            tokens = attempt.kept_tokens if lost else attempt.read_tokens\n",
        "            tokens = attempt.read_tokens\n",
        (_WORKERS,),
    ),
    Bug(
        "a lost job that fails is billed twice",
        "app/jobs/attempt.py",
        "            tokens = attempt.kept_tokens if is_lost(connection, attempt.job) else attempt.read_tokens\n",
        "            tokens = attempt.read_tokens\n",
        (_WORKERS,),
    ),
    Bug(
        "every crash counts, of a job that goes on too",
        "app/db/job_queue.py",
        "    is_suspect = sa.and_(job.c.begun, sa.not_(job.c.kept_since_crash))\n",
        "    is_suspect = job.c.begun\n",
        (_CLAIMS,),
    ),
    Bug(
        "every crash counts, of a job that only waited too",
        "app/db/job_queue.py",
        "    is_suspect = sa.and_(job.c.begun, sa.not_(job.c.kept_since_crash))\n",
        "    is_suspect = sa.not_(job.c.kept_since_crash)\n",
        (_CLAIMS,),
    ),
    Bug(
        "no crash counts of a job that is always claimed beside another",
        "app/db/jobs.py",
        "            if found is None or (found.alone and claimed):\n",
        "            if found is None:\n",
        (_CLAIMS,),
    ),
    Bug(
        "a locked job holds up its person's queue",
        "app/db/jobs.py",
        "_NEXT = by_writers(one=next_job(), many=next_job(passed_over=MOST_LOCKED))\n",
        "_NEXT = by_writers(one=next_job(), many=next_job())\n",
        (_CLAIMS,),
    ),
    Bug(
        "two processes work on a request, and both have their effect",
        "app/db/idempotency.py",
        "    if lost:\n        raise RequestRunning(",
        "    if lost and not claimed.id:\n        raise RequestRunning(",
        ("tests/app/db/test_idempotency.py",),
    ),
)


if __name__ == "__main__":
    raise SystemExit(main(BUGS, module="tests.mutations.jobs", description=__doc__))
