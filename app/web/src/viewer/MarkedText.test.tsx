import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import { MarkedText } from "./MarkedText";

const TEXT = "Lakes.\nname | area\nname: Bala | area: 4.8\nMeasured.";

test("a table is shown as one, with what is marked in its cells", () => {
  const start = 500 + TEXT.indexOf("4.8");
  const html = renderToStaticMarkup(<MarkedText text={TEXT} start={500} marks={[{ start, end: start + 3 }]} />);

  expect(html).toContain('<th scope="col">name</th><th scope="col">area</th>');
  expect(html).toContain('<td>Bala</td><td class="amount"><mark>4.8</mark></td>');
  expect(html).toMatch(/^Lakes\.<table/);
  expect(html).toMatch(/<\/table>Measured\.$/);
});

test("what is around the marks is told apart, in prose and cells", () => {
  const around = { start: TEXT.indexOf("Bala"), end: TEXT.length };
  const marks = [{ start: TEXT.indexOf("Measured"), end: TEXT.length - 1 }];
  const html = renderToStaticMarkup(<MarkedText text={TEXT} start={0} marks={marks} around={around} />);

  expect(html).toContain('<td><span class="text-around">Bala</span></td>');
  expect(html).toContain('<span class="text-around"><mark>Measured</mark>.</span>');
});
