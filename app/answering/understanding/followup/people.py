"""Finds people that a text names by what they do or are: `the pilot`, `the director of Northwind`.

The nouns are a closed list: endings such as -er and -or belong to things as often as to people.
"""

import re

from app.answering.languages.noun_phrases import FUNCTION_WORDS

_NOUNS = """accountant actor administrator advisor agent analyst applicant appellant appellee architect assistant
    attorney auditor author baby borrower boss boy broker buyer candidate captain carpenter cashier ceo cfo chairman
    chairperson chairwoman chancellor chef chemist chief child claimant clerk client coach commander commissioner
    complainant consultant consumer contractor copilot counsellor customer cyclist daughter dealer defendant dentist
    deputy detective developer dietitian director doctor donor driver editor electrician employee employer engineer
    executive farmer father firefighter founder girl governor grandfather grandmother guard guardian heir
    husband infant inspector instructor insured interviewer investigator investor judge king lawyer lecturer lender
    lessee lessor librarian lieutenant man manager mayor mechanic minister minor mother musician nurse officer operator
    owner painter parent partner passenger patient pedestrian petitioner pharmacist physician pilot plaintiff player
    policeman postman president principal professor programmer prosecutor prince princess queen rector
    recipient registrar representative researcher respondent reviewer sailor scientist secretary seller senator sergeant
    servant sheriff singer son student supervisor surgeon surveyor sister brother teacher technician tenant testator
    therapist trainee trainer translator treasurer trustee victim volunteer waiter widow widower wife witness woman
    worker writer"""
_PERSON = "|".join(sorted(_NOUNS.split(), key=lambda noun: (-len(noun), noun)))
# Nouns before which a person's noun describes a thing: "a private pilot certificate".
_COMPOUNDS = r"certificate|error|fatigue|guide|handbook|licen[cs]e|log|logbook|manual|name|program|rating|record|report"
_NAME = r"[A-ZÀ-ÞŁŚŻ][\w.&-]*(?: (?:of )?[A-ZÀ-ÞŁŚŻ\d][\w&-]*)*"
_FULL_NAME = r"[A-ZÀ-ÞŁŚŻ][\w-]+(?: [A-Z]\.)?(?: [A-ZÀ-ÞŁŚŻ][\w-]+)+"
_ROLE = re.compile(
    rf"\b(?i:the|an?|our|this|that)\s+(?P<noun>(?:[a-z][a-z-]+\s+){{0,2}}?(?i:{_PERSON}))\b(?![-\w])"
    rf"(?!\s+(?:{_COMPOUNDS})s?\b)(?P<of>\s+(?:of|at|from)\s+(?:the\s+)?{_NAME})?"
)


def with_name(found: str, text: str) -> str:
    """A role with the name that `text` gives it in apposition: `the pilot John Doe` for "The pilot, John Doe, was"."""
    named = re.search(rf"\b{re.escape(found.removeprefix('the '))},? (?P<name>{_FULL_NAME})", text)
    return found if named is None else f"{found} {named['name']}"


def role(text: str) -> str | None:
    """The first person that `text` names by a role, with `the`; None where it names none.

    >>> role("How many hours did the captain of Flight 12 have?")
    'the captain of Flight 12'
    """
    for found in _ROLE.finditer(text):
        if not FUNCTION_WORDS & set(found["noun"].lower().split()):
            return " ".join(f"the {found['noun']}{found['of'] or ''}".split())
    return None
