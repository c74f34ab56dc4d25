"""Questions become topics by their words: alike ones together, each in one topic, with bounded work."""

import time

from hypothesis import given
from hypothesis import strategies as st

from app.usage.overview.topics import topics

PARKING = ("Where can I park my car?", "where can i park a car", "Can visitors park a car?", "Where do I park the car")
HOLIDAY = ("How many days of holiday do I have?", "How many holiday days are there?")


def test_questions_with_the_same_words_are_one_topic():
    found = topics([PARKING[0], HOLIDAY[0], PARKING[1], HOLIDAY[1], *PARKING[2:]])

    assert [topic.members for topic in found] == [[0, 2, 4, 5], [1, 3]]
    assert {"park", "car"} <= {*found[0].words}
    assert "holiday" in found[1].words


def test_different_questions_are_topics_of_their_own():
    found = topics(["What is a lighthouse?", "Who paid the invoice?", "Name the captain."])

    assert [topic.members for topic in found] == [[0], [1], [2]]


@given(st.lists(st.text(max_size=60), max_size=30))
def test_every_question_is_in_exactly_one_topic(questions):
    found = topics(questions)

    assert sorted(place for topic in found for place in topic.members) == [*range(len(questions))]
    assert [len(topic.members) for topic in found] == sorted((len(topic.members) for topic in found), reverse=True)


def test_two_thousand_questions_take_a_moment():
    words = [f"word{number}" for number in range(400)]
    questions = [" ".join(words[(n * 7 + k * k) % 400] for k in range(20)) for n in range(2000)]
    started = time.process_time()

    topics(questions)

    assert time.process_time() - started < 10
