import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import * as v from "valibot";
import { countMistakes, nearestName } from "../../../core/config/nearest.ts";
import { readNetworkConfig } from "../../../core/config/network.ts";
import { foldOptionNames, optionFault } from "../../../core/config/options.ts";

// Property tests on a busy machine take longer than the 5 s Bun grants.
setDefaultTimeout(60_000);

function backend(options: string) {
  const text = `{"Network": "10.3.0.0/16",\n"Backend": {"Type": "vxlan"${options}}}`;
  const { config, document } = readNetworkConfig(text, "net.json");
  return { options: config.backend.options, document };
}

function fold(written: string, names: readonly string[]) {
  const { options, document } = backend(written);
  return foldOptionNames(options, names, document, "net.json");
}

function fault(written: string, schema: v.GenericSchema, secrets: readonly string[] = []) {
  const { options, document } = backend(written);
  const result = schema["~standard"].validate(options);
  if (result instanceof Promise || !result.issues) throw new Error("no issues");
  return optionFault(result.issues, document, "net.json", secrets);
}

describe("foldOptionNames", () => {
  test("keys match in any case", () => {
    expect(fold(', "vni": 7, "DIRECTrouting": true, "MTU": 1400', ["VNI", "DirectRouting", "MTU"])).toEqual({
      options: { VNI: 7, DirectRouting: true, MTU: 1400 },
      warnings: [],
    });
  });

  test("the last of several counts, whatever their case", () => {
    expect(fold(', "VNI": 1, "vni": 2', ["VNI"]).options).toEqual({ VNI: 2 });
    expect(fold(', "vni": 2, "VNI": 1', ["VNI"]).options).toEqual({ VNI: 1 });
    expect(fold(', "VNI": 1, "vni": 2, "VNI": 3', ["VNI"]).options).toEqual({ VNI: 3 });
  });

  test("unknown keys are left out and told", () => {
    const { options, warnings } = fold(', "DirectRuting": true, "Colour": "blue"', ["VNI", "DirectRouting"]);
    expect(options).toEqual({});
    expect(warnings.map(({ text, fix }) => [text, fix])).toEqual([
      [
        'net.json:2:30: key "Backend.DirectRuting" is unknown and ignored',
        'did you mean "Backend.DirectRouting"?',
      ],
      [
        'net.json:2:52: key "Backend.Colour" is unknown and ignored',
        "remove it; known are VNI, DirectRouting, Type",
      ],
    ]);
  });

  test("without a Backend in the document", () => {
    const { document } = readNetworkConfig('{"Network": "10.3.0.0/16"}', "net.json");
    expect(foldOptionNames({}, ["VNI"], document, "net.json")).toEqual({ options: {}, warnings: [] });
    expect(foldOptionNames({ vni: 3 }, ["VNI"], document, "net.json").options).toEqual({ VNI: 3 });
  });
});

describe("optionFault", () => {
  const schema = v.object({
    VNI: v.optional(v.number()),
    PSK: v.optional(v.pipe(v.string(), v.regex(/^[0-9a-f]+$/))),
  });

  test("places every issue", () => {
    const found = fault(', "VNI": "one", "PSK": 5', schema);
    expect(found.code).toBe("CONFIG_INVALID");
    expect(found.message).toStartWith('net.json:2:37: key "Backend.VNI": "one": Invalid type: Expected');
    expect(found.others.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^net\.json:2:51: key "Backend\.PSK": 5: Invalid type/),
    ]);
  });

  test("a missing option is placed at the object it is missing from", () => {
    expect(fault("", v.object({ PSK: v.string() })).message).toStartWith(
      'net.json:2:12: key "Backend.PSK" is missing: ',
    );
  });

  test("reaches into lists", () => {
    const found = fault(', "Routes": ["a", 2]', v.object({ Routes: v.array(v.string()) }));
    expect(found.message).toStartWith('net.json:2:46: key "Backend.Routes.1": 2: ');
  });

  test.each([
    [', "PSK": "hunter2!"', ["PSK"]],
    [', "psk": "hunter2!"', ["PSK"]],
    [', "PSK": ["hunter2!"]', ["psk"]],
    [', "PSK": {"Key": "hunter2!"}', ["PSK.Key"]],
  ])("never shows a secret: %s", (written, secrets) => {
    const telling = v.record(
      v.string(),
      v.custom(
        () => false,
        (issue) => `not ${JSON.stringify(issue.input)}`,
      ),
    );
    const found = fault(written, telling, secrets);
    for (const { message, hint } of [found, ...found.others]) expect(message + hint).not.toContain("hunter2");
    expect([found, ...found.others].some(({ message }) => message.includes("a secret, not shown"))).toBe(
      true,
    );
  });

  test("a rule over the whole object does not show secrets either", () => {
    const whole = v.pipe(
      v.looseObject({}),
      v.check(
        () => false,
        (issue) => JSON.stringify(issue.input),
      ),
    );
    expect(fault(', "PSK": "hunter2!"', whole, ["PSK"]).message).not.toContain("hunter2");
  });
});

describe("nearestName", () => {
  const keys = ["Network", "SubnetLen", "SubnetMin", "SubnetMax", "Backend", "EnableIPv6"];

  test.each([
    ["Netwrok", "Network"],
    ["netwok", "Network"],
    ["SubnetLength", "SubnetLen"],
    ["EnableIPV6", "EnableIPv6"],
    ["enable-ipv6", "EnableIPv6"],
    ["Backnd", "Backend"],
    ["SubnetMn", "SubnetMin"],
  ])("%s is %s", (word, wanted) => {
    expect(nearestName(word, keys)).toBe(wanted);
  });

  test.each(["", "x", "Colour", "Net", "completely different", "N".repeat(100_000)])("%s is none", (word) => {
    expect(nearestName(word, keys)).toBeUndefined();
  });

  test("a part of a longer name", () => {
    expect(nearestName("renew-margin", ["ip-masq", "subnet-lease-renew-margin"])).toBe(
      "subnet-lease-renew-margin",
    );
  });

  test("distance", () => {
    expect(countMistakes("", "abc")).toBe(3);
    expect(countMistakes("abcd", "acbd")).toBe(1);
    expect(countMistakes("kitten", "sitting")).toBe(3);
    const words = fc.string({ maxLength: 12 });
    fc.assert(
      fc.property(words, words, (a, b) => {
        expect(countMistakes(a, b)).toBe(countMistakes(b, a));
        expect(countMistakes(a, b) === 0).toBe(a === b);
        expect(countMistakes(a, b)).toBeLessThanOrEqual(Math.max(a.length, b.length));
      }),
    );
  });
});
