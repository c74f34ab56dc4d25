/** Server-sent events of a response to any method, which the browser's own `EventSource` cannot read (WHATWG HTML, 9.2). */

export interface ServerEvent {
  event: string;
  data: string;
}

/** The events of a response in order; ends when the response does. Comments, which keep the line open, are left out. */
export async function* eventsOf(response: Response): AsyncGenerator<ServerEvent> {
  if (response.body === null) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      buffer += value ?? "";
      let end = blankLine(buffer);
      while (end !== null) {
        const event = parsed(buffer.slice(0, end.start));
        buffer = buffer.slice(end.stop);
        if (event !== null) yield event;
        end = blankLine(buffer);
      }
      if (done) return;
    }
  } finally {
    await reader.cancel();
  }
}

function blankLine(buffer: string): { start: number; stop: number } | null {
  const found = /\r?\n\r?\n/.exec(buffer);
  return found === null ? null : { start: found.index, stop: found.index + found[0].length };
}

function parsed(block: string): ServerEvent | null {
  let event = "message";
  const data: string[] = [];
  for (const line of block.split(/\r?\n/)) {
    if (line.startsWith(":")) continue;
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") event = value;
    if (field === "data") data.push(value);
  }
  return data.length === 0 ? null : { event, data: data.join("\n") };
}
