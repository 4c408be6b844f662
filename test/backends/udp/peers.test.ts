import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { COUNTERS, type Counter } from "../../../backends/udp/datapath/counters.ts";
import { Pace } from "../../../backends/udp/datapath/pace.ts";
import { PeerTable } from "../../../backends/udp/datapath/peer-table.ts";
import { WordTable } from "../../../backends/udp/datapath/table.ts";
import { judgeCounters } from "../../../backends/udp/findings.ts";
import type { Options } from "../../../backends/udp/options.ts";
import { parseAddress, parsePrefix } from "../../../backends/udp/packet/address.ts";
import { planPeers, publishedData } from "../../../backends/udp/peers.ts";
import { anyBackendData, deepFreeze } from "../../contract/inputs.ts";

const options: Options = { Port: 8285, PortV6: 8286, Offload: "auto" };

const peer = (n: number, data?: unknown) =>
  deepFreeze({
    key: `10.5.${n}.0-24`,
    backendType: "",
    ipv4: { subnet: `10.5.${n}.0/24`, publicIP: `192.0.2.${n}`, ...(data === undefined ? {} : { data }) },
    ipv6: { subnet: `fd00:5:${n}::/64`, publicIP: `2001:db8::${n}` },
  });

const word = (address: string) => parseAddress(address)!.words as [number, number, number, number];

describe("addresses", () => {
  test.each([
    ["10.0.255.1", [0x0a00ff01]],
    ["255.255.255.255", [-1]],
    ["::", [0, 0, 0, 0]],
    ["fd00:5:1::2", [0xfd000005 | 0, 0x00010000, 0, 2]],
    ["1:2:3:4:5:6:7:8", [0x10002, 0x30004, 0x50006, 0x70008]],
    ["::ffff:1", [0, 0, 0, (0xffff << 16) | 1]],
  ])("%s", (text, words) => {
    expect(parseAddress(text)?.words).toEqual(words);
  });

  test.each([
    "",
    "10.0.0",
    "10.0.0.256",
    "1.2.3.4.5",
    ":",
    ":::",
    "1:2",
    "1::2::3",
    "g::",
    "1:2:3:4:5:6:7:8:9",
    "::12345",
  ])("%s is none", (text) => {
    expect(parseAddress(text)).toBeUndefined();
  });

  test("prefixes", () => {
    expect(parsePrefix("10.5.0.0/16")).toEqual({ family: "ipv4", words: [0x0a050000], length: 16 });
    for (const text of ["10.5.0.0", "10.5.0.0/33", "10.5.0.0/", "10.5.0.0/-1", "/8", "::/129"]) {
      expect(parsePrefix(text)).toBeUndefined();
    }
  });
});

describe("peers", () => {
  test("each subnet leads to its node, at the port its lease says or ours; nobody else is a member", () => {
    const { table, unusable } = planPeers([peer(2), peer(3, { Port: 9000 })], options);
    expect(unusable).toEqual([]);
    const peers = new PeerTable(table);
    const endpoint = (n: number) => Buffer.from(peers.endpoint(n));
    const two = endpoint(peers.find4(word("10.5.2.77")[0]));
    expect([two.readUInt16BE(2), [...two.subarray(4, 8)]]).toEqual([8285, [192, 0, 2, 2]]);
    expect(endpoint(peers.find4(word("10.5.3.1")[0])).readUInt16BE(2)).toBe(9000);
    expect(endpoint(peers.find6(...word("fd00:5:3::9"))).readUInt16BE(2)).toBe(8286);
    expect(peers.find4(word("10.5.4.1")[0])).toBe(-1);
    expect(peers.find6(...word("fd00:5:4::9"))).toBe(-1);
    expect(peers.isMember(word("192.0.2.2")[0], 0, 0, 0, 8285)).toBeTrue();
    expect(peers.isMember(word("192.0.2.2")[0], 0, 0, 0, 9000)).toBeFalse();
    expect(peers.isMember(word("192.0.2.9")[0], 0, 0, 0, 8285)).toBeFalse();
    expect(peers.isMember(...word("2001:db8::3"), 8286)).toBeTrue();
  });

  test("a node whose datagrams come from another address than the published one is known by both", () => {
    const external = {
      name: "eth0",
      index: 2,
      mtu: 1500,
      ipv4: "10.0.0.7",
      publicIP: "192.0.2.7",
      ipv6: "2001:db8::7",
      publicIPv6: "2001:db8::7",
    };
    const facts = { external, links: {}, routes: [] };
    expect(publishedData(options, "ipv6", facts)).toEqual({ Port: 8286 });
    const data = publishedData(options, "ipv4", facts);
    expect(data).toEqual({ Port: 8285, Address: "10.0.0.7" });
    const table = new PeerTable(planPeers([peer(7, data)], options).table);
    expect(table.isMember(word("192.0.2.7")[0], 0, 0, 0, 8285)).toBeTrue();
    expect(table.isMember(word("10.0.0.7")[0], 0, 0, 0, 8285)).toBeTrue();
    expect([...table.endpoint(table.find4(word("10.5.7.1")[0])).subarray(4, 8)]).toEqual([192, 0, 2, 7]);
    expect(planPeers([peer(7, { Port: 1, Address: ["?"] })], options).unusable).toEqual([]);
  });

  test("whatever a lease says, the others are planned, and the text says who it is", () => {
    fc.assert(
      fc.property(anyBackendData, (data) => {
        const { table, unusable } = planPeers([peer(2, data), peer(3)], options);
        expect(new PeerTable(table).find4(word("10.5.3.1")[0])).toBeGreaterThanOrEqual(0);
        for (const { key, reason } of unusable) {
          expect(key).toBe("10.5.2.0-24");
          expect(reason.length).toBeLessThan(200);
        }
      }),
    );
  });

  test("the longest prefix wins, in any mix of lengths", () => {
    const prefix = fc.record({ address: fc.integer(), length: fc.integer({ min: 1, max: 32 }) });
    fc.assert(
      fc.property(
        fc.array(prefix, { maxLength: 50 }),
        fc.array(fc.integer(), { maxLength: 20 }),
        (prefixes, asked) => {
          const mask = (length: number) => -1 << (32 - length);
          const seen = new Map<string, { base: number; length: number; n: number }>();
          for (const { address, length } of prefixes) {
            const base = address & mask(length);
            const key = `${base}/${length}`;
            if (!seen.has(key)) seen.set(key, { base, length, n: seen.size });
          }
          const all = [...seen.values()];
          const routes = Int32Array.from(all.flatMap(({ base, length, n }) => [length, base, 0, 0, 0, n, 0]));
          const table = new PeerTable({ routes, endpoints: new Uint8Array(32 * all.length) });
          for (const address of [...asked, ...all.map(({ base }) => base + 1)]) {
            const best = all
              .filter(({ base, length }) => (address & mask(length)) === base)
              .sort((a, b) => b.length - a.length)[0];
            expect(table.find4(address | 0)).toBe(best?.n ?? -1);
          }
        },
      ),
    );
  });

  test("many entries are found again", () => {
    const table = new WordTable(5_000);
    for (let n = 0; n < 5_000; n++) table.add(n << 8, 0, 0, n, 24, n);
    for (let n = 0; n < 5_000; n++) expect(table.get(n << 8, 0, 0, n, 24)).toBe(n);
    expect(table.get(1, 2, 3, 4, 5)).toBe(-1);
  });
});

describe("what counters mean", () => {
  const zero = Object.fromEntries(COUNTERS.map((name) => [name, 0])) as Record<Counter, number>;

  test.each([
    ["strangers", "UDP_STRANGERS"],
    ["malformed", "UDP_MALFORMED"],
    ["sendErrors", "UDP_SEND_FAILED"],
    ["receiveErrors", "UDP_RECEIVE_FAILED"],
    ["writeErrors", "UDP_WRITE_FAILED"],
    ["tooBig", "UDP_PATH_MTU"],
    ["fragmented", "UDP_PATH_MTU"],
  ] as const)("%s that grow are %s, and nothing once they stand still", (counter, code) => {
    const now = { ...zero, [counter]: 5 };
    expect(judgeCounters(zero, now).map((finding) => finding.code)).toEqual([code]);
    expect(judgeCounters(now, now)).toEqual([]);
  });

  test("traffic is nothing to tell of", () => {
    expect(
      judgeCounters(zero, { ...zero, sentPackets: 9, receivedPackets: 9, noRoute: 1, multicast: 3 }),
    ).toEqual([]);
  });
});

test("a pace lets a burst through, and then as many as its rate", () => {
  let now = 0;
  const pace = new Pace(10, 3, () => now);
  const take = () => Array.from({ length: 5 }, () => pace.take()).filter(Boolean).length;
  expect(take()).toBe(3);
  now += 200;
  expect(take()).toBe(2);
  now += 60_000;
  expect(take()).toBe(3);
});
