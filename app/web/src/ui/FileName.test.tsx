import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import { FileName } from "./FileName";

test("a name may be broken between its words, and says the same", () => {
  const html = renderToStaticMarkup(<FileName name="ntsb_report-2007.pdf" />);
  expect(html).toBe("ntsb_<wbr/>report-<wbr/>2007.pdf");
  expect(renderToStaticMarkup(<FileName name="plain.pdf" />)).toBe("plain.pdf");
  expect(renderToStaticMarkup(<FileName name="<b>_" />)).toBe("&lt;b&gt;_");
});
