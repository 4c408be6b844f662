import { describe, expect, test } from "bun:test";
import { COMMAND_NAMES } from "../../../core/cli/commands-table.ts";
import { environmentName, FLAG_NAMES, FLAGS, flagSpec } from "../../../core/cli/flag-table.ts";
import { renderHelp } from "../../../core/cli/flags.ts";

describe("help", () => {
  test("names every flag with its environment variable, placeholder and default", () => {
    const lines = renderHelp("run").split("\n");
    for (const name of FLAG_NAMES) {
      const { type, initial, initialText, noEnvironment } = flagSpec(name);
      const at = lines.indexOf(`  --${name} ${type.placeholder}`.trimEnd());
      expect(at).toBeGreaterThan(0);
      const end = lines.findIndex((line, index) => index > at && !line.startsWith("      "));
      const entry = lines
        .slice(at + 1, end)
        .map((line) => line.trim())
        .join(" ");
      expect(entry.includes(`Environment: ${environmentName(name)}.`)).toBe(!noEnvironment);
      const shown = initialText ?? initial;
      if (shown !== undefined) expect(entry).toContain(`Default: ${shown}.`);
    }
  });

  test.each([...COMMAND_NAMES])("%s fits 100 columns and ends in a line feed", (command) => {
    const text = renderHelp(command);
    for (const line of text.split("\n")) {
      expect(line.length).toBeLessThanOrEqual(100);
      expect(line).toBe(line.trimEnd());
    }
    expect(text).toStartWith("Usage: flanneld ");
    expect(text).toEndWith("\n");
  });

  test("a command shows its own flags only", () => {
    const text = renderHelp("backends");
    expect(text).toContain("-o text|json");
    expect(text).toContain("--plugin-dir DIR");
    expect(text).not.toContain("--etcd-endpoints");
  });

  test("every default is a value its own type accepts", () => {
    for (const name of FLAG_NAMES) {
      const { type, initial } = flagSpec(name);
      expect(() => type.read(initial === undefined ? [] : [initial])).not.toThrow();
    }
    expect(environmentName("log_backtrace_at")).toBe("FLANNELD_LOG_BACKTRACE_AT");
    expect(Object.keys(FLAGS)).toEqual([...FLAG_NAMES]);
  });
});
