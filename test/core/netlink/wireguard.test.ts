/**
 * The wire format of WireGuard's netlink family and of its text protocol by `wg`, without a kernel that has it: what is
 * written for a change reads back as the same peers, since both directions have the same attributes.
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { readWireguardByCommand, writeWireguardByCommand } from "../../../core/netlink/command/wireguard.ts";
import { Exchange } from "../../../core/netlink/exchange.ts";
import {
  type ChangePosition,
  encodeWireguardChange,
  encodeWireguardDump,
} from "../../../core/netlink/families/wireguard.ts";
import { decodeWireguard, joinWireguard } from "../../../core/netlink/families/wireguard-state.ts";
import { NETLINK_GENERIC, resolveFamily } from "../../../core/netlink/generic.ts";
import { MessageBuilder } from "../../../core/netlink/wire/builder.ts";
import { MessageCursor } from "../../../core/netlink/wire/reader.ts";
import type {
  WireguardChange,
  WireguardPeerChange,
  WireguardState,
} from "../../../core/netlink/wireguard-objects.ts";
import { Fault } from "../../../core/observe/fault.ts";

const TARGET = { family: 0x1f, dev: "flannel-wg" };

const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
/** Not all zeros, which stands for none. */
const key = bytes(32)
  .filter((all) => all.some((byte) => byte !== 0))
  .map((all) => Buffer.from(all).toString("base64"));
const endpoint = fc.record({
  address: fc.oneof(
    fc.constantFrom("192.0.2.1", "255.255.255.255", "2001:db8::1", "::1", "fe80::a:0:0:1"),
    fc.ipV4(),
  ),
  port: fc.integer({ min: 1, max: 65535 }),
});
const prefix = fc.oneof(
  fc.tuple(fc.ipV4(), fc.integer({ min: 0, max: 32 })).map(([address, length]) => `${address}/${length}`),
  fc.constantFrom("::/0", "fd00:5:2::/64", "2001:db8::1/128"),
);
const peer: fc.Arbitrary<WireguardPeerChange> = fc.record(
  {
    publicKey: key,
    presharedKey: key,
    endpoint,
    keepalive: fc.integer({ min: 0, max: 65535 }),
    allowedIPs: fc.array(prefix, { maxLength: 5 }),
  },
  { requiredKeys: ["publicKey"] },
);

/** All messages of a change, each as the kernel would get it. */
function encodeAll(change: WireguardChange): Uint8Array[] {
  const builder = new MessageBuilder(32 * 1024);
  const messages: Uint8Array[] = [];
  let from: ChangePosition | undefined;
  do {
    builder.clear();
    from = encodeWireguardChange(builder, 1, TARGET, change, from);
    messages.push(builder.bytes.slice(0, builder.length));
  } while (from !== undefined);
  return messages;
}

function decodeOne(message: Uint8Array): WireguardState {
  const cursor = new MessageCursor(message);
  expect(cursor.next()).toBe(true);
  expect(cursor.type).toBe(TARGET.family);
  return decodeWireguard(cursor);
}

/** What a device that had nothing has after a change. */
function stateAfter({
  publicKey,
  presharedKey,
  endpoint,
  keepalive = 0,
  allowedIPs = [],
}: WireguardPeerChange) {
  return {
    publicKey,
    ...(presharedKey ? { presharedKey } : {}),
    ...(endpoint === undefined ? {} : { endpoint }),
    keepalive,
    allowedIPs,
    rxBytes: 0,
    txBytes: 0,
  };
}

describe("over netlink", () => {
  test("peers read back as they were written", () => {
    fc.assert(
      fc.property(fc.uniqueArray(peer, { selector: ({ publicKey }) => publicKey, maxLength: 8 }), (peers) => {
        const state = joinWireguard(encodeAll({ listenPort: 51820, peers }).map(decodeOne));
        expect(state?.listenPort).toBe(51820);
        expect(state?.peers).toEqual(peers.map(stateAfter));
      }),
    );
  });

  test("thousands of peers, and thousands of prefixes of one, are cut into messages the kernel takes", () => {
    const many = Array.from({ length: 3000 }, (_, n): WireguardPeerChange => {
      const publicKey = Buffer.alloc(32, 1);
      publicKey.writeUInt32LE(n);
      return {
        publicKey: publicKey.toString("base64"),
        endpoint: { address: "192.0.2.1", port: 51820 },
        allowedIPs:
          n === 1500
            ? Array.from({ length: 5000 }, (_, at) => `10.${at >> 8}.${at & 255}.0/24`)
            : ["10.5.1.0/24", "fd00::/64"],
      };
    });
    const messages = encodeAll({ privateKey: many[0]?.publicKey ?? "", peers: many });
    expect(messages.length).toBeGreaterThan(20);
    // The list of peers is one attribute, whose length has 16 bits.
    for (const message of messages) expect(message.length).toBeLessThan(32 * 1024);
    // The key of the device is in the first one only: given again, it would begin all sessions anew.
    expect(messages.filter((message) => Buffer.from(message).includes(privateKeyAttribute)).length).toBe(1);
    const state = joinWireguard(messages.map(decodeOne));
    expect(state?.peers.map(({ publicKey, allowedIPs }) => [publicKey, allowedIPs])).toEqual(
      many.map(({ publicKey, allowedIPs = [] }) => [publicKey, [...allowedIPs]]),
    );
  });

  test("a pre-shared key that is taken away is written as zeros", () => {
    const publicKey = Buffer.alloc(32, 7).toString("base64");
    const [message = new Uint8Array()] = encodeAll({ peers: [{ publicKey, presharedKey: null }] });
    expect(Buffer.from(message).includes(Buffer.from([36, 0, 2, 0, ...Buffer.alloc(32)]))).toBe(true);
    expect(decodeOne(message).peers).toEqual([stateAfter({ publicKey })]);
  });

  test("what is no key, port, address or prefix is refused, without showing the key", () => {
    const publicKey = Buffer.alloc(32, 7).toString("base64");
    const bad: WireguardChange[] = [
      { privateKey: "c2VjcmV0" },
      { privateKey: `${publicKey}x` },
      { peers: [{ publicKey: "" }] },
      { peers: [{ publicKey, presharedKey: "c2VjcmV0" }] },
      { peers: [{ publicKey, endpoint: { address: "example.org", port: 1 } }] },
      { peers: [{ publicKey, endpoint: { address: "192.0.2.1", port: 0 } }] },
      { peers: [{ publicKey, endpoint: { address: "192.0.2.1", port: 65536 } }] },
      { peers: [{ publicKey, keepalive: -1 }] },
      { peers: [{ publicKey, allowedIPs: ["10.5.0.0"] }] },
      { peers: [{ publicKey, allowedIPs: ["10.5.0.0/33"] }] },
    ];
    for (const change of bad) {
      expect(() => encodeAll(change)).toThrow(Fault);
      expect(() => encodeAll(change)).not.toThrow("c2VjcmV0");
    }
  });

  test("a dump asks for one device", () => {
    const builder = new MessageBuilder(1024);
    encodeWireguardDump(builder, 9, TARGET.family, TARGET.dev);
    const message = Buffer.from(builder.bytes.subarray(0, builder.length));
    expect(message.readUInt16LE(6) & 0x300).toBe(0x300);
    expect(message.includes("flannel-wg\0")).toBe(true);
  });

  test("whatever arrives, reading it gives a state or a Fault", () => {
    const samples = [
      encodeAll({
        privateKey: Buffer.alloc(32, 3).toString("base64"),
        listenPort: 1,
        peers: [
          {
            publicKey: Buffer.alloc(32, 7).toString("base64"),
            presharedKey: Buffer.alloc(32, 8).toString("base64"),
            endpoint: { address: "2001:db8::1", port: 5 },
            keepalive: 25,
            allowedIPs: ["10.5.0.0/24", "fd00::/64"],
          },
        ],
      })[0] ?? new Uint8Array(),
    ];
    const mutated = fc
      .tuple(fc.constantFrom(...samples), fc.array(fc.tuple(fc.nat(400), fc.nat(255)), { maxLength: 8 }))
      .map(([sample, changes]) => {
        const copy = sample.slice();
        // The header stays, so that the body is reached.
        for (const [at, value] of changes) copy[16 + (at % (copy.length - 16))] = value;
        return copy;
      });
    fc.assert(
      fc.property(fc.oneof(mutated, fc.uint8Array({ maxLength: 300 })), (received) => {
        try {
          const cursor = new MessageCursor(received);
          while (cursor.next()) joinWireguard([decodeWireguard(cursor)]);
        } catch (error) {
          expect(error).toBeInstanceOf(Fault);
        }
      }),
      { numRuns: 2000 },
    );
  });

  test("a family is found by its name", () => {
    const exchange = new Exchange({ batchBytes: 1024, receiveBuffer: 65536, protocol: NETLINK_GENERIC });
    try {
      // GENL_ID_CTRL (linux/genetlink.h): the only number that is fixed.
      expect(resolveFamily(exchange, "nlctrl")).toBe(16);
      expect(resolveFamily(exchange, "there-is-none")).toBeUndefined();
    } finally {
      exchange.close();
    }
  });
});

/** Head of WGDEVICE_A_PRIVATE_KEY: 36 bytes, type 3. */
const privateKeyAttribute = Buffer.from([36, 0, 3, 0]);

describe("by wg", () => {
  const [PRIVATE, PUBLIC, SECRET] = [1, 2, 3].map((n) => Buffer.alloc(32, n).toString("base64"));

  test("a dump is read", async () => {
    const lines = [
      [PRIVATE, PUBLIC, "51820", "off"],
      [PUBLIC, SECRET, "192.0.2.2:51820", "10.5.2.0/24,fd00:5:2::/64", "1764438000", "10", "20", "25"],
      [SECRET, "(none)", "[2001:db8::2]:51821", "(none)", "0", "0", "0", "off"],
    ];
    const stdout = lines.map((columns) => `${columns.join("\t")}\n`).join("");
    const state = await readWireguardByCommand(async () => ({ stdout, stderr: "" }), "flannel-wg");
    expect(state).toEqual({
      publicKey: PUBLIC ?? "",
      listenPort: 51820,
      peers: [
        {
          publicKey: PUBLIC ?? "",
          presharedKey: SECRET ?? "",
          endpoint: { address: "192.0.2.2", port: 51820 },
          keepalive: 25,
          allowedIPs: ["10.5.2.0/24", "fd00:5:2::/64"],
          lastHandshake: 1764438000,
          rxBytes: 10,
          txBytes: 20,
        },
        {
          publicKey: SECRET ?? "",
          endpoint: { address: "2001:db8::2", port: 51821 },
          keepalive: 0,
          allowedIPs: [],
          rxBytes: 0,
          txBytes: 0,
        },
      ],
    });
  });

  test("no key is ever an argument", async () => {
    const calls: { args: readonly string[]; input: string | undefined }[] = [];
    const run = async (_: string, args: readonly string[], options?: { readonly input?: string }) => {
      calls.push({ args, input: options?.input });
      return { stdout: "", stderr: "" };
    };
    await writeWireguardByCommand(run, "flannel-wg", {
      privateKey: PRIVATE ?? "",
      listenPort: 51820,
      peers: [
        { publicKey: "old", remove: true },
        {
          publicKey: PUBLIC ?? "",
          presharedKey: SECRET ?? "",
          endpoint: { address: "2001:db8::2", port: 5 },
          keepalive: 25,
          allowedIPs: ["10.5.2.0/24", "fd00::/64"],
        },
      ],
    });
    const piped = ["-c", 'cat | exec wg "$@"', "sh"];
    const secret = "/proc/self/fd/0";
    expect(calls).toEqual([
      {
        args: [...piped, "set", "flannel-wg", "private-key", secret, "listen-port", "51820"],
        input: PRIVATE,
      },
      { args: ["set", "flannel-wg", "peer", "old", "remove"], input: undefined },
      {
        args: [
          ...[...piped, "set", "flannel-wg", "peer", PUBLIC ?? "", "preshared-key", secret],
          ...["endpoint", "[2001:db8::2]:5", "persistent-keepalive", "25"],
          ...["allowed-ips", "10.5.2.0/24,fd00::/64"],
        ],
        input: SECRET,
      },
    ]);
  });
});
