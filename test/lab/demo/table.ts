/** Draws a table with box characters. Cells may have several lines; the first row is the head. */
export function renderTable(rows: readonly (readonly string[])[]): string {
  const cells = rows.map((row) => row.map((cell) => cell.split("\n")));
  const columns = Math.max(...rows.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(...cells.map((row) => Math.max(...(row[column] ?? [""]).map(width)))),
  );
  const rule = (left: string, middle: string, right: string) =>
    `${left}${widths.map((size) => "─".repeat(size + 2)).join(middle)}${right}`;
  const lines = cells.flatMap((row, index) => {
    const height = Math.max(...row.map((cell) => cell.length));
    const drawn = Array.from({ length: height }, (_, line) => {
      const parts = widths.map((size, column) => pad(row[column]?.[line] ?? "", size));
      return `│ ${parts.join(" │ ")} │`;
    });
    return index === 0 ? [...drawn, rule("├", "┼", "┤")] : drawn;
  });
  return [rule("┌", "┬", "┐"), ...lines, rule("└", "┴", "┘")].join("\n");
}

/** Numbers stand right, words left. */
function pad(text: string, size: number): string {
  const space = " ".repeat(size - width(text));
  return /^\d+(?:\.\d+)?$|^[✘–]$/.test(text) ? space + text : text + space;
}

function width(text: string): number {
  return [...text].length;
}
