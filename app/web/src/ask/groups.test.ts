import { expect, test } from "vitest";
import type { Conversation } from "../api/types";
import { groupsOf } from "./groups";

function conversation(id: string, pinned = false, folder: string | null = null): Conversation {
  const moment = "2026-11-21T10:00:00.000Z";
  return {
    id,
    object: "conversation",
    title: id,
    metadata: {},
    user_id: "ada",
    user_name: "Ada",
    turns: 1,
    shared: false,
    pinned,
    folder,
    unanswered: 0,
    created_at: moment,
    updated_at: moment,
    hit: null,
  };
}

function shown(listed: Conversation[]) {
  return groupsOf(listed).map(({ name, conversations }) => [name, conversations.map(({ id }) => id)]);
}

test("without pins and folders there is one group without a name", () => {
  expect(shown([conversation("a"), conversation("b")])).toEqual([[null, ["a", "b"]]]);
  expect(shown([])).toEqual([[null, []]]);
});

test("pinned ones come first, then folders by name, then the others, each in the order of the list", () => {
  const listed = [
    conversation("a", true, "Work"),
    conversation("b"),
    conversation("c", false, "Work"),
    conversation("d", false, "Home"),
    conversation("e", false, "Work"),
  ];

  expect(shown(listed)).toEqual([
    ["Pinned", ["a"]],
    ["Home", ["d"]],
    ["Work", ["c", "e"]],
    ["Other conversations", ["b"]],
  ]);
});
