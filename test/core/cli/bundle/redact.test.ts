import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { cleanDocument, REDACTED, Redactor } from "../../../../core/cli/bundle/redact.ts";

const secret = fc.string({ minLength: 6, maxLength: 30 }).filter((text) => !REDACTED.includes(text));

describe("known secrets", () => {
  test("stand in no text afterwards, however they are written", () => {
    fc.assert(
      fc.property(secret, fc.string(), fc.string(), (value, before, after) => {
        const text = [
          before + value + after,
          JSON.stringify({ note: value }),
          encodeURIComponent(value),
          Buffer.from(value).toString("base64"),
        ].join("\n");
        const clean = new Redactor([value]).clean(text);
        expect(clean).not.toContain(value);
        expect(clean).not.toContain(Buffer.from(value).toString("base64"));
      }),
    );
  });

  test("one that is a part of another leaves no rest of it", () => {
    expect(new Redactor(["abcd", "abcdefgh"]).clean("x abcdefgh abcd y")).toBe(`x ${REDACTED} ${REDACTED} y`);
  });

  test("a short one is not looked for everywhere", () => {
    expect(new Redactor(["1", ""]).clean("10.1.1.1")).toBe("10.1.1.1");
  });
});

describe("values under names that tell", () => {
  test.each([
    ['{"PSK": "hunter2x"}', `{"PSK": "${REDACTED}"}`],
    ['{"etcd-password":"a\\"b", "x": "y"}', `{"etcd-password":"${REDACTED}", "x": "y"}`],
    ['{"token": 1234}', `{"token": "${REDACTED}"}`],
    ["--etcd-password=hunter2x --v=1", `--etcd-password=${REDACTED} --v=1`],
    ["FLANNELD_ETCD_PASSWORD=hunter2x", `FLANNELD_ETCD_PASSWORD=${REDACTED}`],
    ["http://user:hunter2x@etcd:2379/", `http://${REDACTED}@etcd:2379/`],
    ['{"Network": "10.0.0.0/8"}', '{"Network": "10.0.0.0/8"}'],
  ])("%s", (text, clean) => {
    expect(new Redactor([]).clean(text)).toBe(clean);
  });
});

test("a document loses what its plugin calls secret, at any depth, and nothing else", () => {
  const document = {
    Network: "10.0.0.0/8",
    Backend: { Type: "x", Key: ["a1", 2], auth: { login: "me" }, n: null },
  };
  expect(cleanDocument(document, ["Key", "Auth.Login"])).toEqual({
    document: {
      Network: "10.0.0.0/8",
      Backend: { Type: "x", Key: [REDACTED, REDACTED], auth: { login: REDACTED }, n: null },
    },
    secrets: ["a1", "2", "me"],
  });
});
