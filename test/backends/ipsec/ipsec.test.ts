import { describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import fc from "fast-check";
import type { Peer, XfrmPolicyState, XfrmState } from "flannel/sdk";
import { associationId, findStaleStates, readAssociations } from "../../../backends/ipsec/associations.ts";
import { findCharon } from "../../../backends/ipsec/charon/find.ts";
import { clearRemains, rememberCharon } from "../../../backends/ipsec/charon/remains.ts";
import {
  connectionMessage,
  connectionName,
  sharedKeyMessage,
  subnetsOfName,
} from "../../../backends/ipsec/connection.ts";
import { Connections } from "../../../backends/ipsec/connections.ts";
import ipsec from "../../../backends/ipsec/index.ts";
import type { Options } from "../../../backends/ipsec/options.ts";
import { planPolicies, policiesFor } from "../../../backends/ipsec/policies.ts";
import { isWithin } from "../../../backends/ipsec/prefix.ts";
import { planRoutes, routesFor } from "../../../backends/ipsec/routes.ts";
import { type FarEnd, findFarEnds, type OwnEnd } from "../../../backends/ipsec/tunnel.ts";
import type { ViciClient } from "../../../backends/ipsec/vici/client.ts";
import type { ViciMessage } from "../../../backends/ipsec/vici/message.ts";
import { TemporaryFolder } from "../../core/host/temporary-folder.ts";
import { FACTS } from "../facts.ts";

const PSK = "0123456789abcdef".repeat(6);
const OPTIONS: Options = { PSK, UDPEncap: false, ESPProposal: "aes128gcm16-sha256-prfsha256-ecp256" };
const OWN: OwnEnd = { address: "192.0.2.1", identity: "192.0.2.1", subnet: "10.5.1.0/24" };
const NETWORK = "10.5.0.0/16";
const isInNetwork = (cidr: string) => isWithin(cidr, NETWORK);
const farEnd = (n: number): FarEnd => ({
  key: `10.5.${n}.0-24`,
  address: `192.0.2.${n}`,
  subnet: `10.5.${n}.0/24`,
});

describe("options", () => {
  const validate = async (raw: unknown) => ipsec.options["~standard"].validate(raw);

  test("have upstream's defaults", async () => {
    expect(await validate({ PSK })).toMatchObject({ value: OPTIONS });
  });

  test("a PSK that is none is refused without being shown", async () => {
    for (const bad of [undefined, "", PSK.slice(1), `secret-${"x".repeat(80)}`, 7, "s".repeat(5_000)]) {
      const { issues } = await validate(bad === undefined ? {} : { PSK: bad });
      expect(issues?.length).toBeGreaterThan(0);
      for (const { message } of issues ?? []) {
        expect(message).toContain("PSK");
        expect(message).not.toContain("secret");
      }
    }
  });

  test("a proposal that could not be one is refused", async () => {
    for (const ESPProposal of ["", "aes 128", "aes;rm", "-aes"]) {
      expect((await validate({ PSK, ESPProposal })).issues?.[0]?.message).toContain("ESPProposal");
    }
    expect((await validate({ PSK, ESPProposal: "aes256-sha256-modp2048" })).issues).toBeUndefined();
  });
});

test("charon is looked for where the flag says, else in PATH and where packages put it", async () => {
  using folder = new TemporaryFolder();
  mkdirSync(folder.file("bin"));
  const charon = folder.file("bin", "charon");
  writeFileSync(charon, "#!/bin/sh\n");
  expect(findCharon({ "charon-executable": charon })).toEqual({ places: [charon] });
  chmodSync(charon, 0o755);
  expect(findCharon({ "charon-executable": charon })).toEqual({ places: [charon], found: charon });
  expect(findCharon({ "charon-executable": folder.path }).found).toBeUndefined();
  expect(findCharon({}, `relative:${folder.file("bin")}`).found).toBe(charon);
  const findings = await ipsec.check?.({
    options: OPTIONS,
    families: { ipv4: true, ipv6: false },
    networks: { ipv4: NETWORK },
    nodeId: "n1",
    flags: { "charon-executable": "/nonexistent/charon" },
    facts: FACTS,
  });
  expect(findings).toMatchObject([{ code: "IPSEC_CHARON_MISSING", severity: "error" }]);
  expect(findings?.[0]?.text).toContain("/nonexistent/charon");
  expect(findings?.[0]?.fix).toContain("strongswan-charon");
});

test("a charon that a former run left is killed; no other process is", async () => {
  using folder = new TemporaryFolder();
  const state = folder.file("charon");
  const left = Bun.spawn(["sleep", "1000"]);
  rememberCharon(state, left.pid);
  expect(clearRemains(state)).toBe(left.pid);
  await left.exited;
  expect(left.signalCode).toBe("SIGKILL");
  expect(existsSync(state)).toBe(false);
  const other = Bun.spawn(["sleep", "1000"]);
  // The same id, started at another time.
  writeFileSync(state, JSON.stringify({ pid: other.pid, since: "1" }));
  expect(clearRemains(state)).toBeUndefined();
  for (const text of ["", "{}", "null", '{"pid":1,"since":"0"}', '{"pid":"x"}']) {
    writeFileSync(state, text);
    expect(clearRemains(state)).toBeUndefined();
  }
  expect(other.exitCode).toBeNull();
  other.kill();
  await other.exited;
});

test("peers of another backend, or without IPv4, are named", () => {
  const peers: Peer[] = [
    { key: "a", backendType: "ipsec", ipv4: { subnet: "10.5.2.0/24", publicIP: "192.0.2.2" } },
    { key: "b", backendType: "vxlan", ipv4: { subnet: "10.5.3.0/24", publicIP: "192.0.2.3" } },
    { key: "c", backendType: "ipsec" },
  ];
  expect(findFarEnds(peers)).toEqual({
    ends: [{ ...farEnd(2), key: "a" }],
    unusable: [
      { key: "b", reason: 'uses backend "vxlan", this node uses "ipsec"' },
      { key: "c", reason: "has no IPv4 subnet" },
    ],
  });
});

describe("what charon is told", () => {
  test("names and proposals are upstream's, the key holds for all peers", () => {
    const name = connectionName(OWN, farEnd(2));
    expect(name).toBe("192.0.2.1-10.5.1.0/24-10.5.2.0/24-192.0.2.2");
    expect(subnetsOfName(name)).toEqual(["10.5.1.0/24", "10.5.2.0/24"]);
    for (const other of ["home", "10.5.1.0/24-10.5.2.0/24", `x${name}`])
      expect(subnetsOfName(other)).toBeUndefined();
    expect(connectionMessage(OWN, farEnd(2), { ...OPTIONS, UDPEncap: true }, false)).toMatchObject({
      [name]: {
        version: "2",
        keyingtries: "0",
        encap: "yes",
        local_addrs: ["192.0.2.1"],
        remote_addrs: ["192.0.2.2"],
        proposals: ["aes256-sha256-modp4096"],
        children: {
          "10.5.1.0/24-10.5.2.0/24": {
            local_ts: ["10.5.1.0/24"],
            remote_ts: ["10.5.2.0/24"],
            esp_proposals: [OPTIONS.ESPProposal],
            mode: "tunnel",
            reqid: "11",
            policies: "no",
          },
        },
      },
    });
    expect(sharedKeyMessage(OWN, [farEnd(3), farEnd(2)], PSK)).toEqual({
      id: "flannel",
      type: "IKE",
      data: PSK,
      owners: ["192.0.2.1", "192.0.2.2", "192.0.2.3"],
    });
  });

  test("where charon moves the packets it makes policies, and numbers tunnels itself", () => {
    const [connection] = Object.values(connectionMessage(OWN, farEnd(2), OPTIONS, true)) as ViciMessage[];
    const [child] = Object.values(connection?.children as ViciMessage) as ViciMessage[];
    expect(child).toMatchObject({ policies: "yes" });
    expect(child).not.toHaveProperty("reqid");
  });
});

test("prefixes: what lies in a network", () => {
  expect(isWithin("10.5.1.0/24", NETWORK)).toBe(true);
  expect(isWithin("10.5.0.0/16", NETWORK)).toBe(true);
  expect(isWithin("10.6.0.0/24", NETWORK)).toBe(false);
  expect(isWithin("10.0.0.0/8", NETWORK)).toBe(false);
  expect(isWithin("0.0.0.0/0", "0.0.0.0/0")).toBe(true);
  for (const bad of ["", "10.5.1.0", "10.5.1.0/33", "300.5.1.0/24", "fd00::/64"])
    expect(isWithin(bad, NETWORK)).toBe(false);
});

describe("policies", () => {
  const apply = (actual: readonly XfrmPolicyState[], fars: readonly FarEnd[]) => {
    const wanted = fars.flatMap((far) => policiesFor(OWN, far));
    const there = new Map(
      actual.map((policy) => [`${policy.direction} ${policy.src} ${policy.dst}`, policy]),
    );
    const changes = planPolicies(actual, wanted, isInNetwork);
    for (const change of changes) {
      if (!("policy" in change)) throw new Error("only policies");
      const { direction, src, dst } = change.policy;
      if (change.action === "put") there.set(`${direction} ${src} ${dst}`, change.policy);
      else expect(there.delete(`${direction} ${src} ${dst}`)).toBe(true);
    }
    return { after: [...there.values()], changes };
  };
  const foreign: XfrmPolicyState[] = [
    {
      src: "10.9.1.0/24",
      dst: "10.5.1.0/24",
      direction: "in",
      tunnel: { src: "1.1.1.1", dst: "192.0.2.1", reqid: 11 },
    },
    {
      src: "10.5.7.0/24",
      dst: "10.5.8.0/24",
      direction: "out",
      tunnel: { src: "1.1.1.1", dst: "1.1.1.2", reqid: 12 },
    },
    { src: "10.5.7.0/24", dst: "10.5.9.0/24", direction: "out" },
  ];

  test("out, in and forward, as upstream has them", () => {
    const back = { src: "192.0.2.2", dst: "192.0.2.1", reqid: 11 };
    expect(policiesFor(OWN, farEnd(2))).toEqual([
      {
        src: "10.5.1.0/24",
        dst: "10.5.2.0/24",
        direction: "out",
        tunnel: { src: "192.0.2.1", dst: "192.0.2.2", reqid: 11 },
      },
      { src: "10.5.2.0/24", dst: "10.5.1.0/24", direction: "in", tunnel: back },
      { src: "10.5.2.0/24", dst: "10.5.1.0/24", direction: "fwd", tunnel: back },
    ]);
  });

  test("from any state of ours to any other: exactly the wanted ones, others' untouched, then nothing to do", () => {
    const peers = fc.uniqueArray(fc.integer({ min: 2, max: 20 }), { maxLength: 8 });
    fc.assert(
      fc.property(peers, peers, fc.boolean(), (before, wanted, moved) => {
        const far = (n: number) => farEnd(n);
        const first = apply(foreign, before.map(far)).after;
        const elsewhere = moved
          ? first.map((policy) =>
              policy.tunnel?.reqid === 11 && isInNetwork(policy.src)
                ? { ...policy, tunnel: { ...policy.tunnel, dst: "203.0.113.1" } }
                : policy,
            )
          : first;
        const { after } = apply(elsewhere, wanted.map(far));
        const expected = [...foreign, ...wanted.flatMap((n) => policiesFor(OWN, far(n)))];
        const text = (policies: readonly XfrmPolicyState[]) =>
          policies.map((each) => JSON.stringify(each)).sort();
        expect(text(after)).toEqual(text(expected));
        expect(apply(after, wanted.map(far)).changes).toEqual([]);
      }),
    );
  });
});

test("routes: the wanted ones are put, stale ones of ours go, what is right stays", () => {
  const wanted = routesFor(NETWORK, "eth0", OWN, [farEnd(2), farEnd(3)]);
  expect(wanted).toEqual([
    { kind: "route", dst: NETWORK, dev: "", blackhole: true },
    { kind: "route", dst: "10.5.2.0/24", dev: "eth0", src: "10.5.1.0" },
    { kind: "route", dst: "10.5.3.0/24", dev: "eth0", src: "10.5.1.0" },
  ]);
  const actual = [
    { dst: NETWORK, type: 6 },
    { dst: "10.5.2.0/24", dev: "eth0", src: "10.5.1.0", type: 1 },
    { dst: "10.5.3.0/24", dev: "eth0", src: "10.5.99.0", type: 1 },
    { dst: "10.5.4.0/24", dev: "eth0", src: "10.5.1.0", type: 1 },
    { dst: "10.77.0.0/24", dev: "eth0", type: 1 },
  ];
  expect(planRoutes(actual, wanted, isInNetwork)).toEqual([
    { action: "put", object: { kind: "route", dst: "10.5.3.0/24", dev: "eth0", src: "10.5.1.0" } },
    { action: "delete", object: { kind: "route", dst: "10.5.4.0/24", dev: "eth0" } },
  ]);
  expect(planRoutes([], wanted, isInNetwork).length).toBe(3);
});

const event = (name: string, state: string, ...children: string[]): ViciMessage => ({
  [name]: {
    uniqueid: "1",
    state,
    "child-sas": Object.fromEntries(
      children.map((child, at) => [
        `c-${at}`,
        { state: child, "spi-in": `c000000${at}`, "spi-out": "0badc0de" },
      ]),
    ),
  },
});

test("associations: up while packets pass, tried while charon is at it", () => {
  const found = readAssociations([
    event("a", "ESTABLISHED", "INSTALLED"),
    event("b", "CONNECTING"),
    event("c", "ESTABLISHED"),
    event("d", "ESTABLISHED", "DELETING"),
    event("d", "ESTABLISHED", "REKEYED", "CREATED"),
  ]);
  expect(found.get("a")).toEqual({
    isUp: true,
    isTried: false,
    isLost: false,
    spis: [0xc0000000, 0x0badc0de],
  });
  expect(found.get("b")).toMatchObject({ isUp: false, isTried: true });
  // Without a child and over: to be started again.
  expect(found.get("c")).toMatchObject({ isUp: false, isTried: false });
  expect(found.get("d")).toMatchObject({ isUp: true, isTried: true });
  expect(readAssociations([{}, { x: "text" }, { y: { "child-sas": "text" } }]).get("y")?.isUp).toBe(false);
});

test("a tunnel whose states the kernel lost is ended when it is seen so twice, then started anew", async () => {
  let events: readonly ViciMessage[] = [];
  let spis = new Set([0xc0000000, 0x0badc0de]);
  const charon = fakeCharon(() => events);
  const connections = new Connections(charon.connection, OPTIONS, isInNetwork);
  const name = connectionName(OWN, farEnd(2));
  await connections.load(OWN, [farEnd(2)]);
  charon.commands();
  const look = async (now: number) => {
    const found = await connections.raise(OWN, [farEnd(2)], async () => spis, now);
    return { isUp: found.get(name)?.isUp ?? false, commands: charon.commands() };
  };
  events = [event(name, "ESTABLISHED", "INSTALLED")];
  expect(await look(0)).toEqual({ isUp: true, commands: [] });
  spis = new Set([0xc0000000]);
  expect(await look(1_000)).toMatchObject({ isUp: false });
  expect((await look(2_000)).commands).toContain("terminate");
  events = [];
  charon.commands();
  expect((await look(60_000)).commands).toEqual(["initiate"]);
});

test("states that were inherited go when a new tunnel is up, or the peer is gone; nobody else's do", () => {
  const state = (src: string, dst: string, spi: number, more: Partial<XfrmState> = {}): XfrmState => ({
    ...{ src, dst, spi, protocol: 50, reqid: 11, mode: "tunnel" },
    ...more,
  });
  const known = {
    own: OWN.address,
    spis: new Set([5]),
    peers: new Map([
      ["192.0.2.2", true],
      ["192.0.2.3", false],
    ]),
  };
  const stale = findStaleStates(
    [
      state("192.0.2.1", "192.0.2.2", 1),
      state("192.0.2.2", "192.0.2.1", 2),
      state("192.0.2.3", "192.0.2.1", 3),
      state("192.0.2.1", "192.0.2.99", 4),
      state("192.0.2.2", "192.0.2.1", 5),
      state("192.0.2.2", "192.0.2.1", 6, { reqid: 12 }),
      state("192.0.2.2", "192.0.2.1", 7, { mode: "transport" }),
      state("192.0.2.7", "192.0.2.8", 8),
    ],
    known,
  );
  expect(stale.map(({ spi }) => spi)).toEqual([1, 2, 4]);
  expect(associationId(state("a", "b", 9))).toBe("b 9");
});

/** A charon of data: answers what it was told. */
function fakeCharon(associations: () => readonly ViciMessage[]) {
  const asked: { readonly command: string; readonly message: ViciMessage }[] = [];
  const conns = new Set(["somebody-else", "192.0.2.1-10.5.1.0/24-10.5.77.0/24-192.0.2.77"]);
  let refuse = "";
  const client = {
    isOpen: true,
    async request(command: string, message: ViciMessage = {}) {
      asked.push({ command, message });
      const [name = ""] = Object.keys(message);
      if (command === "get-conns") return { conns: [...conns] };
      if (command === "load-conn") {
        if (refuse !== "" && name.includes(refuse)) throw new Error("charon refuses: bad proposal");
        conns.add(name);
      }
      if (command === "unload-conn") conns.delete(String(message.name));
      if (command === "terminate") throw new Error("charon refuses: no matching SAs to terminate found");
      return {};
    },
    list: async () => associations(),
  };
  return {
    asked,
    conns,
    commands: () => asked.splice(0).map(({ command }) => command),
    refuse: (text: string) => {
      refuse = text;
    },
    connection: { client: client as unknown as ViciClient, inUserSpace: false },
  };
}

describe("connections", () => {
  test("are loaded once, unloaded when they are too much, and others' are left alone", async () => {
    const charon = fakeCharon(() => []);
    const connections = new Connections(charon.connection, OPTIONS, isInNetwork);
    expect(await connections.load(OWN, [farEnd(2), farEnd(3)])).toEqual(new Map());
    expect(charon.commands()).toEqual([
      "get-conns",
      "load-shared",
      "load-conn",
      "load-conn",
      "unload-conn",
      "terminate",
    ]);
    expect([...charon.conns].sort()).toEqual([
      connectionName(OWN, farEnd(2)),
      connectionName(OWN, farEnd(3)),
      "somebody-else",
    ]);
    await connections.load(OWN, [farEnd(2), farEnd(3)]);
    expect(charon.commands()).toEqual([]);
    await connections.load(OWN, [farEnd(3)]);
    expect(charon.commands()).toEqual(["load-shared", "unload-conn", "terminate"]);
    expect(await connections.clean(true)).toEqual([connectionName(OWN, farEnd(3))]);
    await connections.clean(false);
    expect([...charon.conns]).toEqual(["somebody-else"]);
  });

  test("one that charon refuses is named, and tried again", async () => {
    const charon = fakeCharon(() => []);
    const connections = new Connections(charon.connection, OPTIONS, isInNetwork);
    charon.refuse("192.0.2.2");
    const refused = await connections.load(OWN, [farEnd(2), farEnd(3)]);
    expect([...refused]).toEqual([["10.5.2.0-24", "charon refuses: bad proposal"]]);
    charon.refuse("");
    charon.commands();
    expect(await connections.load(OWN, [farEnd(2), farEnd(3)])).toEqual(new Map());
    expect(charon.commands()).toEqual(["load-conn"]);
  });

  test("are started by the lower address at once, by the other after a moment, again with growing pauses", async () => {
    let events: readonly ViciMessage[] = [];
    const charon = fakeCharon(() => events);
    const own = { ...OWN, address: "192.0.2.5", identity: "192.0.2.5" };
    const connections = new Connections(charon.connection, OPTIONS, isInNetwork);
    const fars = [farEnd(2), farEnd(30)];
    await connections.load(own, fars);
    const initiated = async (now: number) => {
      charon.asked.length = 0;
      await connections.raise(own, fars, async () => undefined, now);
      return charon.asked.filter(({ command }) => command === "initiate").map(({ message }) => message.ike);
    };
    const [low, high] = fars.map((far) => connectionName(own, far)) as [string, string];
    expect(await initiated(0)).toEqual([high]);
    expect(await initiated(100)).toEqual([]);
    expect(await initiated(2_000)).toContain(low);
    events = [event(high, "ESTABLISHED", "INSTALLED"), event(low, "CONNECTING")];
    expect(await initiated(60_000)).toEqual([]);
    expect([...connections.downFor(20_000, 60_000)]).toEqual([low]);
    events = [event(low, "ESTABLISHED", "INSTALLED")];
    const counts = [0, 0];
    for (let now = 100_000; now < 400_000; now += 1_000) {
      const names = await initiated(now);
      counts[now < 130_000 ? 0 : 1] = (counts[now < 130_000 ? 0 : 1] ?? 0) + names.length;
      expect(names).not.toContain(low);
    }
    expect(counts[0]).toBeGreaterThan(2);
    expect(counts[1]).toBeLessThan(12);
    expect([...connections.downFor(20_000, 400_000)]).toEqual([high]);
  });
});
