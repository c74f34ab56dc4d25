// OpenAI's own client for Node against the server named in FOOTNOTE_URL: one JSON object of what it saw.
import { createRequire } from "node:module";

const { default: OpenAI } = createRequire(process.env.PACKAGES)("openai");
const { FOOTNOTE_URL, FOOTNOTE_KEY, MODEL: model, QUESTION } = process.env;
const client = new OpenAI({ baseURL: `${FOOTNOTE_URL}/v1`, apiKey: FOOTNOTE_KEY, maxRetries: 0 });
const messages = [{ role: "user", content: QUESTION }];

const chat = (await client.chat.completions.create({ model, messages })).choices[0].message;

let streamed = "";
let annotations = [];
for await (const chunk of await client.chat.completions.create({ model, messages, stream: true })) {
  streamed += chunk.choices[0]?.delta?.content ?? "";
  annotations = chunk.choices[0]?.delta?.annotations ?? annotations;
}

const response = await client.responses.create({ model, input: QUESTION });
const kinds = [];
const stream = client.responses.stream({ model, input: QUESTION }).on("event", (event) => kinds.push(event.type));
const final = await stream.finalResponse();

let refused = null;
try {
  await client.responses.create({ model, input: QUESTION, temperature: 9 });
} catch (error) {
  refused = { kind: error.constructor.name, status: error.status, param: error.param };
}
let stranger = null;
try {
  await new OpenAI({ baseURL: `${FOOTNOTE_URL}/v1`, apiKey: "fn_no", maxRetries: 0 }).models.list();
} catch (error) {
  stranger = { kind: error.constructor.name, status: error.status };
}

console.log(
  JSON.stringify({
    chat: { text: chat.content, notes: chat.annotations },
    streamed: { text: streamed, notes: annotations },
    response: { text: response.output_text, notes: response.output.at(-1).content[0].annotations },
    final: { text: final.output_text, notes: final.output.at(-1).content[0].annotations },
    kinds,
    refused,
    stranger,
  }),
);
