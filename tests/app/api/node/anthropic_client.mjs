// Anthropic's own client for Node against the server named in FOOTNOTE_URL: one JSON object of what it saw.
import { createRequire } from "node:module";

const { default: Anthropic } = createRequire(process.env.PACKAGES)("@anthropic-ai/sdk");
const { FOOTNOTE_URL, FOOTNOTE_KEY, MODEL: model, QUESTION } = process.env;
const client = new Anthropic({ baseURL: FOOTNOTE_URL, apiKey: FOOTNOTE_KEY, maxRetries: 0 });
const asked = { model, max_tokens: 100, messages: [{ role: "user", content: QUESTION }] };

const whole = await client.messages.create(asked);
const kinds = [];
const stream = client.messages.stream(asked).on("streamEvent", (event) => kinds.push(event.type));
const streamed = await stream.finalMessage();

let refused = null;
try {
  await client.messages.create({ ...asked, max_tokens: 0 });
} catch (error) {
  refused = { kind: error.constructor.name, status: error.status };
}

console.log(JSON.stringify({ whole, streamed, kinds, refused }));
