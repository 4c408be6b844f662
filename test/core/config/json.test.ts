import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { MAX_JSON_BYTES, MAX_JSON_DEPTH, readJson } from "../../../core/config/json.ts";
import { foldName, toValue } from "../../../core/config/json-tree.ts";
import { Fault } from "../../../core/observe/fault.ts";

// Many runs on a busy machine take longer than the 5 s Bun grants.
setDefaultTimeout(60_000);

/** Work done since `before`, which unlike the clock does not depend on what else the machine does. */
function cpuMilliseconds(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

function refusal(text: string): Fault {
  try {
    readJson(text, "net.json");
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
  throw new Error(`accepted: ${text}`);
}

describe("syntax errors name the place, the mistake and the remedy", () => {
  test.each([
    ["", "net.json:1:1: the document is empty", "JSON object"],
    [" \n\t", "net.json:2:2: the document is empty", "JSON object"],
    ['{"a":1,}', 'net.json:1:7: "," before "}"', "trailing comma"],
    ['{\n  "a": [1,\n  ]\n}', 'net.json:2:10: "," before "]"', "trailing comma"],
    ["{'a':1}", "net.json:1:2: ' is no quote", "double quotes"],
    ['{"a":\u201cb\u201d}', "net.json:1:6: \u201c is a typographic quote", "double quotes"],
    ['{"a":1 // one\n}', "net.json:1:8: comments are not JSON", "remove the comment"],
    ['/* a */ {"a":1}', "net.json:1:1: comments are not JSON", "remove the comment"],
    ['{"a":1\n# b\n}', "net.json:2:1: comments are not JSON", "remove the comment"],
    ['{"a":NaN}', "net.json:1:6: NaN is not JSON", "finite"],
    ['{"a":-Infinity}', "net.json:1:6: this number is not JSON", "digits"],
    ['{"a":True}', "net.json:1:6: True is not JSON", "write true"],
    ['{"a":None}', "net.json:1:6: None is not JSON", "null"],
    ["{a:1}", 'net.json:1:2: unexpected "a", expected a key in double quotes', "key"],
    ['{"a":secretWord}', "net.json:1:6: text without quotes is not JSON", "double quotes"],
    ['{"a" 1}', 'net.json:1:6: unexpected "1", expected ":"', ":"],
    ['{"a":1 "b":2}', 'net.json:1:8: unexpected "\\"", expected "," or "}"', ","],
    ["[1 2]", 'net.json:1:4: unexpected "2", expected "," or "]"', ","],
    ['{"a":1}}', "net.json:1:8: text after the end", "remove"],
    ['{"a":', "net.json:1:6: the document ends here", "complete"],
    ['{\n "a": {"b": 1', 'net.json:2:14: the document ends here, "{" of 2:7 is not closed', "add"],
    ["[", 'net.json:1:2: the document ends here, "[" of 1:1 is not closed', "add"],
    ['{"a":"b', "net.json:1:6: the string that starts here is not closed", "closing quote"],
    ['{"a":"b\n"}', "net.json:1:6: the string that starts here is not closed", "closing quote"],
    ['{"a":"b\tc"}', "net.json:1:8: control character U+0009", "\\t"],
    ['{"a":"\\x41"}', "net.json:1:7: this escape is not JSON", "legal"],
    ['{"a":"\\u12g4"}', "net.json:1:7: this escape is not JSON", "legal"],
    ['{"a":"\\', "net.json:1:7: this escape is not JSON", "legal"],
    ['{"a":012}', "net.json:1:6: this number is not JSON", "digits"],
    ['{"a":+1}', "net.json:1:6: this number is not JSON", "digits"],
    ['{"a":0x10}', "net.json:1:6: this number is not JSON", "digits"],
    ['{"a":1.}', "net.json:1:6: this number is not JSON", "digits"],
    ['{"a":.5}', "net.json:1:6: this number is not JSON", "digits"],
    ['{"a":10.0.0.0/8}', "net.json:1:6: this number is not JSON", "double quotes"],
    ['{"a":\u00a01}', "net.json:1:6: U+00A0 is no white space", "plain space"],
    ["{,}", 'net.json:1:2: unexpected ","', "key"],
    ["[,]", 'net.json:1:2: unexpected ","', "value"],
    ['{"a":\u0000}', "net.json:1:6: unexpected U+0000", "value"],
  ])("%j", (text, message, hint) => {
    const fault = refusal(text);
    expect(fault.code).toBe("CONFIG_INVALID");
    expect(fault.message).toStartWith(message);
    expect(fault.hint).toContain(hint);
    expect(() => JSON.parse(text)).toThrow();
  });

  test("columns count characters, and a byte order mark is none", () => {
    expect(refusal('{"\u{1f600}é": x1}').message).toStartWith("net.json:1:8:");
    expect(refusal('\ufeff{"a": x1}').message).toStartWith("net.json:1:7:");
    expect(refusal('\ufeff{\r\n"a": x1}').message).toStartWith("net.json:2:6:");
  });

  test("values never show up in a message", () => {
    const secret = "correcthorsebattery";
    for (const text of [
      `{"PSK": ${secret}}`,
      `{"PSK": "${secret}}`,
      `{"PSK": "${secret}",}`,
      `{"PSK": '${secret}'}`,
    ]) {
      const { message, hint } = refusal(text);
      expect(message + hint).not.toContain(secret);
    }
  });
});

describe("limits", () => {
  test("nesting", () => {
    const nest = (depth: number) => "[".repeat(depth) + "]".repeat(depth);
    expect(readJson(nest(MAX_JSON_DEPTH), "x").root.kind).toBe("array");
    expect(refusal(nest(MAX_JSON_DEPTH + 1)).message).toContain("nested deeper than 64 levels");
    expect(refusal("[".repeat(MAX_JSON_BYTES)).message).toContain("nested deeper");
    expect(refusal('{"a":'.repeat(200_000)).message).toContain("nested deeper");
  });

  test("size counts bytes", () => {
    const fits = `"${"x".repeat(MAX_JSON_BYTES - 2)}"`;
    expect(readJson(fits, "x").root.kind).toBe("string");
    expect(refusal(`${fits} `).message).toContain("are too many");
    expect(refusal(`"${"é".repeat(MAX_JSON_BYTES / 2)}"`).message).toContain("are too many");
  });

  test("the largest document is read in bounded time", () => {
    const many = `[${Array.from({ length: 100_000 }, (_, at) => `{"k":${at}}`).join(",")}]`;
    const before = process.cpuUsage();
    readJson(many, "x");
    refusal(`${many.slice(0, -1)},]`);
    expect(cpuMilliseconds(before)).toBeLessThan(5_000);
  });
});

describe("what is read", () => {
  test("the same values as JSON.parse, and every value's own text at its place", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), fc.constantFrom(undefined, 1, "\t"), (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        const document = readJson(text, "x");
        expect(toValue(document.root)).toEqual(JSON.parse(text));
        const check = (node: typeof document.root): void => {
          if (node.kind === "object") for (const member of node.members) check(member.value);
          else if (node.kind === "array") node.items.forEach(check);
          expect(JSON.parse(document.raw(node))).toEqual(toValue(node));
        };
        check(document.root);
      }),
    );
  });

  test("accepts exactly what JSON.parse accepts", () => {
    const pieces = [
      "{",
      "}",
      "[",
      "]",
      ":",
      ",",
      '"',
      '"a"',
      '"\\u00e9"',
      "1",
      "-",
      "0",
      ".5",
      "e+1",
      "true",
      "null",
      " ",
      "\n",
      "\\",
    ];
    const texts = fc.array(fc.constantFrom(...pieces), { maxLength: 12 }).map((parts) => parts.join(""));
    fc.assert(
      fc.property(texts, (text) => {
        let wanted: unknown;
        try {
          wanted = JSON.parse(text);
        } catch {
          expect(refusal(text).message).toMatch(/^net\.json:\d+:\d+: ./);
          return;
        }
        expect(toValue(readJson(text, "x").root)).toEqual(wanted);
      }),
      { numRuns: 5_000 },
    );
  });

  test("places", () => {
    const document = readJson(
      '{\n  "Network": "10.3.0.0/16",\n  "backend": {"vni": 7, "list": [1, {"a": true}]}\n}',
      "x",
    );
    expect(document.locate(["Network"])).toEqual({ line: 2, column: 14, raw: '"10.3.0.0/16"' });
    expect(document.locate(["Backend", "VNI"])).toEqual({ line: 3, column: 22, raw: "7" });
    expect(document.locate(["Backend", "list", 1, "a"])).toEqual({ line: 3, column: 43, raw: "true" });
    for (const path of [["Nope"], ["Network", "x"], ["backend", "list", "x"], ["backend", "list", 9]]) {
      expect(document.locate(path)).toBeUndefined();
    }
  });

  test("half surrogate pairs are replaced, __proto__ is an ordinary key", () => {
    expect(toValue(readJson('"\\ud800x"', "x").root)).toBe("\ufffdx");
    const value = toValue(readJson('{"__proto__": {"polluted": true}}', "x").root) as Record<string, unknown>;
    expect(Object.keys(value)).toEqual(["__proto__"]);
    expect(value.polluted).toBeUndefined();
  });

  test("names fold as in Go", () => {
    expect(foldName("ſubnetLen")).toBe(foldName("SubnetLen"));
    expect(foldName("Networ\u212a")).toBe(foldName("NETWORK"));
    expect(foldName("Networc")).not.toBe(foldName("Network"));
  });
});
