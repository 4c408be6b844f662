import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { createLog, renderForTerminal } from "../../../core/observe/log.ts";

function capture(form: "json" | "text", verbosity = 0) {
  const lines: string[] = [];
  return { lines, log: createLog({ verbosity, form, write: (line) => lines.push(line) }) };
}

const line = (fields: object) =>
  renderForTerminal(JSON.stringify({ level: "info", time: "2026-11-29T12:00:01.123Z", ...fields }));

describe("a line for the terminal", () => {
  test("has clock, level, message and fields", () => {
    expect(line({ msg: "made device flannel.1", mtu: 1450, up: true, vxlan: { vni: 1 } })).toBe(
      '12:00:01.123 INFO  made device flannel.1 mtu=1450 up=true vxlan={"vni":1}\n',
    );
  });

  test("quotes what a reader could take apart", () => {
    expect(line({ msg: "x", a: "plain", b: "two words", c: "k=v", d: 'say "hi"', e: "", f: null })).toBe(
      '12:00:01.123 INFO  x a=plain b="two words" c="k=v" d="say \\"hi\\"" e="" f=null\n',
    );
  });

  test("does not hand on what another node wrote to make the terminal obey", () => {
    const text = line({
      msg: "peer\u001b[2J\u001b]0;owned\u0007 uses\r\nERROR fake",
      type: "a\u009bb\u202ec",
    });
    expect(text).toBe(
      "12:00:01.123 INFO  peer\\u001b[2J\\u001b]0;owned\\u0007 uses\\u000d\\u000aERROR fake type=a\\u009bb\\u202ec\n",
    );
  });

  test("is always one line, whatever the message and the fields", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "binary" }),
        fc.dictionary(fc.string(), fc.jsonValue()),
        (msg, fields) => {
          const { log, lines } = capture("text");
          log.info(msg, fields);
          expect(lines).toHaveLength(1);
          expect(lines[0]).toEndWith("\n");
          expect(lines[0]!.slice(0, -1)).not.toMatch(/\p{Cc}|\u2028|\u2029/u);
        },
      ),
      { numRuns: 200 },
    );
  });
});

describe("the log", () => {
  test("writes one JSON object per line, levels by name", () => {
    const { log, lines } = capture("json");
    log.child({ plugin: "vxlan" }).warn("careful", { peers: 3 });
    expect(JSON.parse(lines[0]!)).toEqual({
      level: "warn",
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      msg: "careful",
      plugin: "vxlan",
      peers: 3,
    });
  });

  test("tells debug lines only when asked to", () => {
    const quiet = capture("json", 0);
    quiet.log.debug("detail");
    const loud = capture("json", 1);
    loud.log.debug("detail");
    expect([quiet.lines.length, loud.lines.length]).toEqual([0, 1]);
  });

  test.each(["json", "text"] as const)("shows no secret in %s, also one level down", (form) => {
    const { log, lines } = capture(form);
    log.info("options", {
      password: "s3cret",
      token: "s3cret",
      nested: { psk: "s3cret", PSK: "s3cret", mtu: 1 },
    });
    expect(lines[0]).not.toContain("s3cret");
    expect(lines[0]).toContain("[redacted]");
    expect(lines[0]).toContain("mtu");
  });
});
