import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { splitCommand } from "../../../backends/extension/split.ts";
import { Machine, peer, refusalOf } from "./machine.ts";

describe("without a shell", () => {
  test("a command is its words, with variables replaced inside of them", async () => {
    using machine = new Machine();
    const SubnetAddCommand = `  tee\t$OUT.$PUBLIC_IP \${OUT}  `;
    const { sync } = await machine.start({ SubnetAddCommand, Shell: false });
    process.env.OUT = machine.out;
    try {
      expect((await sync(peer(2))).failed).toEqual([]);
    } finally {
      delete process.env.OUT;
    }
    expect(readFileSync(`${machine.out}.192.0.2.2`, "utf8")).toBe("data 2\n");
  });

  test("nothing in it is special", () => {
    const environment = { A: "x y", B: "$A" };
    expect(splitCommand(`run '$A' "\${B}"z ; | $ $NONE \${no $(id) \`id\``, environment)).toEqual([
      "run",
      "'x y'",
      '"$A"z',
      ";",
      "|",
      "$",
      "",
      `\${no`,
      "$(id)",
      "`id`",
    ]);
    fc.assert(
      fc.property(fc.array(fc.stringMatching(/^[^\s$]+$/)), (words) => {
        expect(splitCommand(words.join(" \t\n"), {})).toEqual(words);
      }),
    );
  });

  test("a command that is not installed is said by name", async () => {
    using machine = new Machine();
    const refusal = await refusalOf(
      machine.start({ PreStartupCommand: "no-such-command at all", Shell: false }),
    );
    expect(refusal.message).toContain('"no-such-command" is not installed');
  });
});
