"""The questions of the golden answers, and where the scripted reader points for each of them."""

from dataclasses import dataclass

SURE, LIKELY, DOUBTFUL = 30.0, 2.0, -1.5
"""Margins of the reader: a certain answer, one that is answered but not confirmed, and one that is unsure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question with a readable name.

    Attributes:
        name: Names its cases.
        text: What is asked.
        key: The reader points where a question has this text, in lower case; "" never.
        points_at: The words that the reader points at.
        margin: How sure the reader is of them.
        before: The question before it, where it is asked in a conversation.
    """

    name: str
    text: str
    key: str = ""
    points_at: str = ""
    margin: float = SURE
    before: str = "What is the Aldey ferry called?"


def _a(name: str, text: str, key: str = "", points_at: str = "", margin: float = SURE, before: str = "") -> Asked:
    asked = Asked(name=name, text=text, key=key, points_at=points_at, margin=margin)
    return Asked(name=name, text=text, key=key, points_at=points_at, margin=margin, before=before or asked.before)


QUESTIONS: tuple[Asked, ...] = (
    # Dates
    _a("date-of-building", "When was the ferry Aldey Star built?", "built", "1987"),
    _a(
        "date-of-first-light", "When was the lighthouse on Skerry rock lit for the first time?", "lit", "3 October 1871"
    ),
    _a("date-of-storm", "When was the pier damaged by the storm?", "damaged", "12 January 1993", LIKELY),
    _a("date-of-opening", "When did the bakery open?", "open?", "1926"),
    _a("date-of-next-meeting", "When is the next meeting of the ferry board?", "next meeting", "18 April 2023"),
    _a("date-of-dredging", "When was the harbour dredged?", "dredged", "April 2019", DOUBTFUL),
    # Numbers
    _a("number-of-ships", "How many ships did the harbour master log in May?", "ships", "forty ships"),
    _a("number-of-passengers", "How many passengers does the ferry carry?", "passengers", "220 passengers"),
    _a("number-of-loaves", "How many loaves does the bakery sell on a Saturday?", "loaves", "950"),
    _a("number-of-days", "How many days of annual leave does every employee have?", "annual leave", "27 days", LIKELY),
    _a("cost-of-dredging", "How much did the dredging of the harbour cost?", "dredging", "1.2 million euros"),
    _a("cost-of-batteries", "How much do the batteries cost?", "batteries", "1.9 million euros"),
    _a("length-of-crossing", "How long does the crossing take in winter?", "crossing", "50 minutes"),
    _a("length-of-boat", "How long is the ferry?", "how long is the ferry", "48 metres", LIKELY),
    _a("surplus", "What surplus did Lena Fischer report for 2022?", "surplus", "84,300 euros"),
    _a("depth", "How deep is the harbour of Morven?", "deep", "7.5 metres", DOUBTFUL),
    # Names
    _a("name-of-captain", "Who is the captain of the ferry?", "captain", "Ingrid Solberg"),
    _a("name-of-engineer", "Who designed the tower of the lighthouse?", "designed", "Robert Kerr"),
    _a("name-of-keeper", "Who was the last keeper of the lighthouse?", "keeper", "Magnus Flett", LIKELY),
    _a("name-of-family", "Which family owns the bakery?", "family", "the Moreau family"),
    _a("name-of-master", "What is the name of the harbour master?", "name of the harbour", "Greta Holm"),
    # Plain facts
    _a("fact-granite", "What was the pier built of?", "pier built of", "granite"),
    _a("fact-oven", "What is the oven of the bakery heated with?", "oven", "beech wood"),
    _a("fact-light", "How often does the light flash?", "flash", "twice every 20 seconds"),
    _a("fact-certificate", "When is a medical certificate required?", "certificate", "from the fourth day of illness"),
    _a("fact-lost-property", "Where is the lost property office?", "lost property", "in the ticket hall, room 12"),
    _a("fact-ramp", "What is the money for the new ramp?", "new ramp", "60,000 euros", DOUBTFUL),
    _a("why-no-sailing", "Why does the ferry not sail?", "not sail", "when the wind is above\nforce 9"),
    _a("why-water", "Why is the harbour dredged and what did the county pay?"),
    _a("how-to-report", "How must employees report an illness?", "report an illness", "before 9:00 on the\nfirst day"),
    # Tables
    _a("table-fare", "What is the adult fare from Morven to Aldey?", "adult", "8.50"),
    _a("table-bicycle", "What does a bicycle cost on the night ferry?", "bicycle", "2.00", LIKELY),
    _a("table-height", "What is the height of the lantern?", "height", "4 m"),
    _a("table-role", "What is the role of Paul Adeyemi?", "role", "Deputy harbour master"),
    _a("table-since", "Since when has Lena Fischer been the accountant?", "accountant", "2017"),
    # Lists, comparisons, yes and no
    _a("list-present", "Who was present at the meeting of the ferry board?", "present", "Ingrid Solberg, Greta Holm"),
    _a("list-costs", "List the costs in the investment plan for 2024.", "costs", "260,000 euros", LIKELY),
    _a("list-rules", "List the rules of parental leave.", "parental", "16 weeks"),
    _a("compare-months", "Were more ships logged in May or in June?", "in may or in june", "fifty-two ships"),
    _a("compare-plans", "Compare the ramp and the radar in the investment plan 2023."),
    _a("compare-days", "Does the bakery sell more loaves on a weekday or on a Saturday?", "more loaves", "950 on a"),
    _a("yes-parking", "Is parking free on Sundays?", "parking free", "Parking is free on Sundays"),
    _a("yes-transfer", "May parental leave be transferred to the other parent?", "transferred", "may not\nbe", LIKELY),
    _a("no-fares", "Did the board raise the fares?", "raise", "rejected the proposal"),
    # Follow-ups
    _a("follow-up-it", "How long is it?", "how long is", "48 metres", before="When was the ferry Aldey Star built?"),
    _a("follow-up-and", "And in June?", "june", "fifty-two ships", before="How many ships were logged in May?"),
    _a("follow-up-who", "Who is her deputy?", "deputy", "Paul Adeyemi", before="Who is the harbour master?"),
    _a("follow-up-why", "Why?", before="Did the board reject the proposal to raise the fares?"),
    # Unanswerable
    _a("unanswerable-topic", "Which enzyme splits milk sugar?"),
    _a("unanswerable-near", "How many trawlers sank in the harbour in 1950?"),
    _a("unanswerable-words", "xyzzy plugh"),
    # Other languages
    _a("german-of-german", "Wann wurde die Mühle gebaut?", "mühle", "1742"),
    _a("german-of-english", "Wie viele ships hat die harbour master im May logged?"),
    _a("french-of-english", "Combien de passagers le ferry Aldey Star peut-il transporter ?"),
    # Small talk and the catalogue
    _a("greeting", "Hello!"),
    _a("thanks-german", "Danke!"),
    _a("abilities", "What can you do?"),
    _a("which-documents", "Which documents are there?"),
    # Documents as a whole
    _a("outline-named", "What is the leave policy about?"),
    _a("outline-lighthouse", "Summarise lighthouse.md", before="When was the lighthouse lit?"),
    _a("outline-this", "What is this document about?", before="When was the ferry Aldey Star built?"),
    _a("which-plan", "Summarise the investment plan."),
)
