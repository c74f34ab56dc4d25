import { expect, test } from "vitest";
import { hasProvider, problemOf, setProvider } from "./http";

function refused(body: BodyInit): Response {
  return new Response(body, { status: 401, headers: { "Content-Type": "application/problem+json" } });
}

test("who is refused is told whether there is a provider to sign in through", async () => {
  for (const openid of [true, false]) {
    setProvider(!openid);
    await problemOf(refused(JSON.stringify({ openid })));
    expect(hasProvider()).toBe(openid);
  }
});

test("a refusal that was cut off, or is a proxy's, does not change what is known of the provider", async () => {
  const cut = new ReadableStream({ start: (stream) => stream.error(new DOMException("aborted", "AbortError")) });
  for (const body of [cut, "<html>"]) {
    setProvider(true);
    const problem = await problemOf(refused(body));
    expect(problem.status).toBe(401);
    expect(hasProvider()).toBe(true);
  }
});
