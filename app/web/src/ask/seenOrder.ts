/** Questions in the order in which they were first shown, and new ones below: nothing moves away under a pointer. */
export function inSeenOrder<T extends { question: string }>(before: readonly T[], now: readonly T[]): T[] {
  const places = new Map(before.map(({ question }, at) => [question, at]));
  const placeOf = ({ question }: T) => places.get(question) ?? before.length;
  return now.toSorted((one, other) => placeOf(one) - placeOf(other));
}
