import { describe, expect, test } from "bun:test";
import { checkHost, chooseBackend, configureBackend, networksOf } from "../../../core/agent/backend.ts";
import { readNetworkConfig } from "../../../core/config/network.ts";
import { describeError, type Fault } from "../../../core/observe/fault.ts";
import type { HostFacts } from "../../../plugins/sdk/facts.ts";
import { TemporaryRoot } from "../registry/plugin-root.ts";

const facts: HostFacts = { external: { name: "eth0", index: 2, mtu: 1500 }, links: {}, routes: [] };

/** A plugin whose functions are what the test says; `options` has one number called `Level`. */
function source(functions: { configure?: string; check?: string; validate?: string } = {}): string {
  const {
    configure = `() => ({ mode: "declarative", links: () => [], publish: () => ({ backendType: "mine" }),
      mtu: () => 1400, own: () => [], peer: () => ({ objects: [] }) })`,
    check,
    validate,
  } = functions;
  const options = validate
    ? `{ "~standard": { version: 1, vendor: "test", validate: ${validate} } }`
    : `v.object({ Level: v.optional(v.number("must be a number"), 3), Name: v.optional(v.string()) })`;
  return `import { defineBackend } from "flannel/sdk";
    import * as v from "valibot";
    export default defineBackend({ optionNames: ["Level", "Name"], options: ${options},
      ${check ? `check: ${check},` : ""} configure: ${configure} });`;
}

/** Chooses plugin \`mine\` for a config. */
async function choose(code: string, backend: object, manifest: object = {}, more: object = {}) {
  using root = new TemporaryRoot();
  root.add("mine", { backends: [{ type: "mine", families: ["ipv4", "ipv6"] }], ...manifest }, code);
  const text = JSON.stringify({ Network: "10.5.0.0/16", Backend: { Type: "mine", ...backend }, ...more });
  const reading = readNetworkConfig(text, "config");
  return { chosen: await chooseBackend(root.discover(), reading, "config"), config: reading.config };
}

const failing = (work: Promise<unknown>): Promise<Fault> =>
  work.then(
    () => {
      throw new Error("it did not fail");
    },
    (fault) => fault,
  );

describe("options", () => {
  test("are folded to the documented names, checked and completed", async () => {
    const { chosen } = await choose(source(), { level: 7 });
    expect([chosen.options, chosen.warnings]).toEqual([{ Level: 7 }, []]);
    expect((await choose(source(), {})).chosen.options).toEqual({ Level: 3 });
  });

  test("that nobody knows are a warning with the nearest name", async () => {
    const { chosen } = await choose(source(), { Levle: 7 });
    expect(chosen.options).toEqual({ Level: 3 });
    expect(chosen.warnings).toHaveLength(1);
    expect(`${chosen.warnings[0]?.text} ${chosen.warnings[0]?.fix}`).toContain("Level");
  });

  test("that are wrong are all named with their place", async () => {
    const fault = await failing(choose(source(), { Level: "7", Name: 8 }));
    expect(fault.code).toBe("CONFIG_INVALID");
    expect([fault, ...fault.others].map((each) => each.message)).toEqual([
      expect.stringMatching(/^config:1:\d+: key "Backend.Level": "7": must be a number$/),
      expect.stringMatching(/^config:1:\d+: key "Backend.Name": 8: /),
    ]);
  });

  test("that are secret are not shown when they are wrong", async () => {
    const fault = await failing(choose(source(), { Name: 112233 }, { secrets: ["Name"] }));
    expect(fault.message).toContain("Backend.Name");
    expect(fault.message).not.toContain("112233");
  });

  test("whose check throws are the plugin's fault, by name", async () => {
    const fault = await failing(choose(source({ validate: '() => { throw new Error("oops"); }' }), {}));
    expect(fault).toMatchObject({
      code: "PLUGIN_FAILED",
      message: 'plugin "mine" cannot check its options: oops',
    });
  });

  test("may be checked asynchronously", async () => {
    const validate = "async (value) => ({ value: { ...value, async: true } })";
    expect((await choose(source({ validate }), { Level: 1 })).chosen.options).toEqual({
      Level: 1,
      async: true,
    });
  });
});

test("a family the backend has not is refused before anything is made", async () => {
  const manifest = { backends: [{ type: "mine", families: ["ipv4"] }] };
  const dual = { EnableIPv6: true, IPv6Network: "fd00:5::/48" };
  expect(await failing(choose(source(), {}, manifest, dual))).toMatchObject({
    code: "BACKEND_FAMILY",
    message: 'backend "mine" has no IPv6',
    hint: expect.stringContaining("EnableIPv6"),
  });
});

describe("configuring", () => {
  test("hands over options, families, networks and identity, as plain data", async () => {
    const configure = `(input) => ({ mode: "declarative", links: () => [], publish: () => ({ backendType: JSON.stringify(input) }),
      mtu: () => 1, own: () => [], peer: () => ({ objects: [] }) })`;
    const { chosen, config } = await choose(source({ configure }), {});
    const backend = configureBackend(chosen, config, "node-1");
    if (backend.mode !== "declarative") throw new Error("not declarative");
    expect(JSON.parse(backend.publish(facts).backendType)).toEqual({
      options: { Level: 3 },
      families: { ipv4: true, ipv6: false },
      networks: { ipv4: "10.5.0.0/16" },
      nodeId: "node-1",
    });
  });

  test("tells the networks of the last run that are none any more", async () => {
    const configure = `({ formerNetworks }) => ({ mode: "declarative", links: () => [],
      publish: () => ({ backendType: "mine", ipv4: formerNetworks }), mtu: () => 1, own: () => [],
      peer: () => ({ objects: [] }) })`;
    const { chosen, config } = await choose(source({ configure }), {});
    const toldOf = (last: { ipv4?: string; ipv6?: string }) => {
      const backend = configureBackend(chosen, config, "node-1", undefined, last);
      return backend.mode === "declarative" ? backend.publish(facts).ipv4 : "not declarative";
    };
    expect(toldOf({ ipv4: "10.5.0.0/16" })).toBeUndefined();
    expect(toldOf({ ipv4: "10.5.0.0/16", ipv6: "fd00::/48" })).toEqual({ ipv6: "fd00::/48" });
    expect(toldOf({ ipv4: "10.99.0.0/16" })).toEqual({ ipv4: "10.99.0.0/16" });
  });

  test.each([
    ["throws", '() => { throw new Error("no luck"); }', /cannot be configured: no luck/],
    ["gives nothing", "() => undefined", /returned no backend: it is missing/],
    ["forgets a function", '() => ({ mode: "declarative" })', /"links" is missing/],
    ["invents a mode", '() => ({ mode: "magic" })', /"mode" is "magic"/],
  ])("that %s is the plugin's fault", async (_, configure, message) => {
    const { chosen, config } = await choose(source({ configure }), {});
    let fault: unknown;
    try {
      configureBackend(chosen, config, "node-1");
    } catch (error) {
      fault = error;
    }
    expect(fault).toMatchObject({ code: "PLUGIN_FAILED" });
    expect(describeError(fault)).toMatch(message);
  });
});

describe("the plugin's check of the host", () => {
  const finding = (severity: string) =>
    `() => [{ code: "X_ODD", severity: "${severity}", title: "odd", text: "the host is odd", fix: "make it even" }]`;
  const check = async (code?: string) => {
    const { chosen, config } = await choose(source(code === undefined ? {} : { check: code }), {});
    return checkHost(chosen, config, "node-1", facts);
  };

  test("lets warnings through, and a plugin without a check", async () => {
    expect((await check(finding("warning"))).map((each) => each.code)).toEqual(["X_ODD"]);
    expect(await check()).toEqual([]);
  });

  test("stops the start at an error, under its own code", async () => {
    expect(await failing(check(finding("error")))).toMatchObject({
      code: "X_ODD",
      message: "odd: the host is odd",
      hint: "make it even",
    });
  });

  test("that throws is the plugin's fault", async () => {
    expect(await failing(check('async () => { throw new Error("broken"); }'))).toMatchObject({
      code: "PLUGIN_FAILED",
      message: 'plugin "mine" failed its check: broken',
    });
  });
});

test("networks are those of the enabled families", () => {
  const { config } = readNetworkConfig(
    '{"EnableIPv4": false, "EnableIPv6": true, "IPv6Network": "fd00:5::/48"}',
    "c",
  );
  expect(networksOf(config)).toEqual({ ipv6: "fd00:5::/48" });
});
