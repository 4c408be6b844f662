/** The text protocol of WireGuard in user space; that a real one understands it is shown by test/e2e/wireguard.test.ts. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { derivePublicKey } from "../../../backends/wireguard/key.ts";
import { decodeAnswer, encodeSet, isWhole } from "../../../backends/wireguard/userspace/protocol.ts";

const base64 = (n: number) => Buffer.alloc(32, n).toString("base64");
const hex = (n: number) => Buffer.alloc(32, n).toString("hex");

test("a change is written peer by peer, each beginning with its key", () => {
  const text = encodeSet({
    privateKey: base64(1),
    listenPort: 51820,
    peers: [
      { publicKey: base64(2), remove: true },
      {
        publicKey: base64(3),
        presharedKey: base64(4),
        endpoint: { address: "2001:db8::3", port: 51821 },
        keepalive: 25,
        allowedIPs: ["10.5.3.0/24", "fd00::/64"],
      },
      { publicKey: base64(5), presharedKey: null, endpoint: { address: "192.0.2.5", port: 1 } },
    ],
  });
  expect(text.split("\n")).toEqual([
    "set=1",
    `private_key=${hex(1)}`,
    "listen_port=51820",
    `public_key=${hex(2)}`,
    "remove=true",
    `public_key=${hex(3)}`,
    `preshared_key=${hex(4)}`,
    "endpoint=[2001:db8::3]:51821",
    "persistent_keepalive_interval=25",
    "replace_allowed_ips=true",
    "allowed_ip=10.5.3.0/24",
    "allowed_ip=fd00::/64",
    `public_key=${hex(5)}`,
    `preshared_key=${hex(0)}`,
    "endpoint=192.0.2.5:1",
    "",
    "",
  ]);
});

describe("an answer", () => {
  const ANSWER = [
    `private_key=${hex(1)}`,
    "listen_port=51820",
    "fwmark=7",
    `public_key=${hex(2)}`,
    `preshared_key=${hex(0)}`,
    "protocol_version=1",
    "last_handshake_time_sec=0",
    "last_handshake_time_nsec=0",
    "tx_bytes=0",
    "rx_bytes=0",
    "persistent_keepalive_interval=0",
    `public_key=${hex(3)}`,
    `preshared_key=${hex(4)}`,
    "endpoint=[2001:db8::3]:51821",
    "last_handshake_time_sec=1764438000",
    "tx_bytes=10",
    "rx_bytes=20",
    "persistent_keepalive_interval=25",
    "allowed_ip=10.5.3.0/24",
    "allowed_ip=fd00::/64",
    "errno=0",
    "",
    "",
  ].join("\n");

  test("is read into the same state as the kernel's, without the private key", () => {
    const { errno, state } = decodeAnswer(ANSWER);
    expect(errno).toBe(0);
    expect(state).toEqual({
      publicKey: derivePublicKey(base64(1)),
      listenPort: 51820,
      peers: [
        { publicKey: base64(2), keepalive: 0, allowedIPs: [], rxBytes: 0, txBytes: 0 },
        {
          publicKey: base64(3),
          presharedKey: base64(4),
          endpoint: { address: "2001:db8::3", port: 51821 },
          keepalive: 25,
          allowedIPs: ["10.5.3.0/24", "fd00::/64"],
          lastHandshake: 1764438000,
          rxBytes: 20,
          txBytes: 10,
        },
      ],
    });
    expect(JSON.stringify(state)).not.toContain(base64(1));
  });

  test("is whole at its empty line only", () => {
    for (let length = 0; length < ANSWER.length; length++)
      expect(isWhole(ANSWER.slice(0, length))).toBe(false);
    expect(isWhole(ANSWER)).toBe(true);
  });

  test("of an error carries its number, with either sign", () => {
    expect(decodeAnswer("errno=-98\n\n").errno).toBe(98);
    expect(decodeAnswer("errno=98\n\n").errno).toBe(98);
  });

  test("that makes no sense is an error that shows no key", () => {
    const lines = ANSWER.split("\n");
    const damage = fc.tuple(fc.nat(lines.length - 1), fc.string({ maxLength: 80 }));
    fc.assert(
      fc.property(fc.oneof(damage, fc.string()), (damaged) => {
        const text =
          typeof damaged === "string" ? damaged : lines.toSpliced(damaged[0], 1, damaged[1]).join("\n");
        try {
          decodeAnswer(text);
        } catch (error) {
          expect(error).toBeInstanceOf(Error);
          expect(String(error)).not.toContain(hex(1));
        }
      }),
      { numRuns: 2000 },
    );
  });
});
