import { describe, expect, test } from "bun:test";
import type { XfrmState } from "flannel/sdk";
import { associationId, findStaleStates, readAssociations } from "../../../backends/ipsec/associations.ts";
import { connectionName } from "../../../backends/ipsec/connection.ts";
import { Connections } from "../../../backends/ipsec/connections.ts";
import type { ViciClient } from "../../../backends/ipsec/vici/client.ts";
import type { ViciMessage } from "../../../backends/ipsec/vici/message.ts";
import { farEnd, isInNetwork, OPTIONS, OWN } from "./ends.ts";

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
      if (command === "unload-conn" && !conns.delete(String(message.name)))
        throw new Error("charon refuses: unload: connection not found");
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
    connection: { client: client as unknown as ViciClient, inUserSpace: false, isOurs: false },
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

  test("of a charon that is gone on with, only what differs is loaded and unloaded", async () => {
    const gone = (n: number) => `192.0.2.1-10.5.1.0/24-10.5.${n}.0/24-192.0.2.${n}`;
    const [kept, added] = [connectionName(OWN, farEnd(2)), connectionName(OWN, farEnd(3))];
    const charon = fakeCharon(() => [
      event(kept, "ESTABLISHED", "INSTALLED"),
      event(gone(78), "ESTABLISHED", "INSTALLED"),
      event("of-others", "ESTABLISHED", "INSTALLED"),
    ]);
    charon.conns.add(kept);
    const connections = new Connections({ ...charon.connection, isOurs: true }, OPTIONS, isInNetwork);
    await connections.load(OWN, [farEnd(2), farEnd(3)]);
    const told = charon.asked.map(({ command, message }) => [
      command,
      message.name ?? message.ike ?? Object.keys(message)[0],
    ]);
    expect(told).toEqual([
      ["get-conns", undefined],
      ["load-shared", "id"],
      ["load-conn", added],
      ["unload-conn", gone(77)],
      ["terminate", gone(77)],
      ["unload-conn", gone(78)],
      ["terminate", gone(78)],
    ]);
    charon.commands();
    await connections.raise(OWN, [farEnd(2)], async () => undefined);
    expect(charon.commands()).toEqual([]);
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

  test("that the far end has begun are not begun here as well, for a while", async () => {
    const call = (state: string): ViciMessage => ({
      "(unnamed)": { uniqueid: "3", state, "remote-host": "192.0.2.2", "child-sas": {} },
    });
    let events = [call("CONNECTING")];
    const charon = fakeCharon(() => events);
    const connections = new Connections(charon.connection, OPTIONS, isInNetwork);
    const fars = [farEnd(2), farEnd(3)];
    await connections.load(OWN, fars);
    const initiated = async (now: number) => {
      charon.asked.length = 0;
      await connections.raise(OWN, fars, async () => undefined, now);
      return charon.asked.filter(({ command }) => command === "initiate").map(({ message }) => message.ike);
    };
    const [called, other] = fars.map((far) => connectionName(OWN, far)) as [string, string];
    expect(await initiated(0)).toEqual([other]);
    expect(await initiated(14_000)).not.toContain(called);
    expect(await initiated(15_000)).toContain(called);
    events = [call("DELETING")];
    expect(await initiated(60_000)).toContain(called);
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
