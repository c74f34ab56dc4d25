import { describe, expect, it } from "vitest";
import { isAmount, proseAndTables, type Table } from "./cells";

function tableOf(text: string, start = 0): Table {
  const [found] = proseAndTables(text, start).filter((part) => part.kind === "table");
  if (found === undefined) throw new Error("there is no table");
  return found;
}

function words(table: Table): (string | null)[][] {
  return table.rows.map((row) => row.map((cell) => cell?.text ?? null));
}

describe("prose and tables", () => {
  it("leaves prose as it is", () => {
    const text = "One line.\n\nAnother | with a bar.\nA third.";
    expect(proseAndTables(text, 7)).toEqual([{ kind: "prose", text, start: 7 }]);
    expect(proseAndTables("", 0)).toEqual([{ kind: "prose", text: "", start: 0 }]);
  });

  it("finds rows between prose", () => {
    const parts = proseAndTables("Above.\nOslo | 700\nBergen | 290\nBelow.", 100);
    expect(parts.map((part) => part.kind)).toEqual(["prose", "table", "prose"]);
    expect(parts.map((part) => part.start)).toEqual([100, 107, 131]);
    expect(words(tableOf("Oslo | 700\nBergen | 290"))).toEqual([
      ["Oslo", "700"],
      ["Bergen", "290"],
    ]);
  });

  it("leaves the column of the rows' own names without one", () => {
    const table = tableOf("Food | Calories\nLeaves | Food: Ash, Elm | Calories: 50\nGrain | Calories: 200");
    expect(table.names?.map((cell) => cell?.text ?? null)).toEqual([null, "Food", "Calories"]);
    expect(words(table)).toEqual([
      ["Leaves", "Ash, Elm", "50"],
      ["Grain", null, "200"],
    ]);
  });

  it("takes a row that stands alone and repeats the names of its columns for a table", () => {
    const table = tableOf("Year: 2021 | Ducks: 150", 10);
    expect(table.names).toEqual([
      { text: "Year", start: 10 },
      { text: "Ducks", start: 23 },
    ]);
    expect(table.rows).toEqual([
      [
        { text: "2021", start: 16 },
        { text: "150", start: 30 },
      ],
    ]);
    expect(tableOf("Oslo | people: 7 | area: 4").names?.map((cell) => cell?.text ?? null)).toEqual([
      null,
      "people",
      "area",
    ]);
    for (const prose of ["Note: see A | B", "One | two", "Only: one"]) {
      expect(proseAndTables(prose, 0)).toEqual([{ kind: "prose", text: prose, start: 0 }]);
    }
  });

  it("puts the names that rows repeat above their columns, and values below them", () => {
    const table = tableOf("city | people | area\ncity: Oslo | area: 454\ncity: Bergen | people: 290 | area: 465");
    expect(table.names?.map((cell) => cell?.text)).toEqual(["city", "people", "area"]);
    expect(words(table)).toEqual([
      ["Oslo", null, "454"],
      ["Bergen", "290", "465"],
    ]);
  });

  it("reads Markdown's rows without the line below the names", () => {
    const table = tableOf("| Who | Where |\n|:---|---:|\n| Ann \\| Bo | |");
    expect(table.names?.map((cell) => cell?.text)).toEqual(["Who", "Where"]);
    expect(words(table)).toEqual([["Ann \\| Bo", ""]]);
  });

  it("tells amounts from words", () => {
    for (const amount of ["5659", "-81", "(1,208)", "$3.50", "12%", "1’234.5", "−7"]) {
      expect(isAmount(amount)).toBe(true);
    }
    for (const words of ["Zone NA", "2023-06-30", "A1", "", "3 EUR", "—"]) expect(isAmount(words)).toBe(false);
  });

  it("knows where each cell begins, in code points", () => {
    const text = "🚢 ship | 🌍 place\n🚢 ship: Röst | 🌍 place: Å";
    const [row] = tableOf(text, 1_000).rows;
    const points = [...text];
    for (const cell of row ?? []) {
      expect(points.slice((cell?.start ?? 0) - 1_000).join("")).toMatch(new RegExp(`^${cell?.text}`));
    }
    expect(row?.map((cell) => cell?.text)).toEqual(["Röst", "Å"]);
  });
});
