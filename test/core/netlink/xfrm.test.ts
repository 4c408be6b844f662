import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { parsePolicies, parseStates } from "../../../core/netlink/command/xfrm.ts";
import { decodePolicy, decodeState } from "../../../core/netlink/families/xfrm-state.ts";
import type { Kernel } from "../../../core/netlink/kernel.ts";
import { MessageCursor } from "../../../core/netlink/wire/reader.ts";
import type { XfrmPolicy, XfrmPolicyState } from "../../../core/netlink/xfrm-objects.ts";
import { Fault } from "../../../core/observe/fault.ts";
import { inNamespace } from "../../lab/in-namespace.ts";
import { IMPLEMENTATIONS, openHost } from "./host.ts";

const TUNNEL = { src: "192.0.2.1", dst: "192.0.2.2", reqid: 11 };
const OUT: XfrmPolicy = { src: "10.5.1.0/24", dst: "10.5.2.0/23", direction: "out", tunnel: TUNNEL };
const BACK = {
  src: "10.5.2.0/23",
  dst: "10.5.1.0/24",
  tunnel: { ...TUNNEL, src: TUNNEL.dst, dst: TUNNEL.src },
};
const POLICIES: readonly XfrmPolicy[] = [OUT, { ...BACK, direction: "in" }, { ...BACK, direction: "fwd" }];

const sorted = (policies: readonly XfrmPolicyState[]) =>
  policies.map(({ src, dst, direction, tunnel }) => JSON.stringify([src, dst, direction, tunnel])).sort();

describe.each(IMPLEMENTATIONS)("policies over %s", (_, open) => {
  let host: Awaited<ReturnType<typeof openHost>>;
  beforeAll(async () => {
    host = await openHost(open, "xfrm");
    // The socket belongs to the namespace that the first call is made in.
    await inNamespace(host.ns, () => host.kernel.xfrmPolicies());
  });
  afterAll(() => host[Symbol.asyncDispose]());

  const put = (kernel: Kernel, ...policies: readonly XfrmPolicy[]) =>
    kernel.applyXfrm(policies.map((policy) => ({ action: "put", policy })));

  test("are written as `ip` shows them, and read back as they were written", async () => {
    const { kernel, ns } = host;
    expect(await put(kernel, ...POLICIES)).toEqual([]);
    const text = await ns.exec("ip", "xfrm", "policy", "list");
    expect(text).toMatch(
      /^src 10\.5\.1\.0\/24 dst 10\.5\.2\.0\/23 \n\tdir out priority 0 (?:ptype main )?\n\ttmpl src 192\.0\.2\.1 dst 192\.0\.2\.2\n\t\tproto esp reqid 11 mode tunnel\n/m,
    );
    expect(sorted(await kernel.xfrmPolicies())).toEqual(sorted(POLICIES));
    expect(sorted(parsePolicies(text))).toEqual(sorted(POLICIES));
    const detailed = await ns.exec("ip", "-d", "xfrm", "policy", "list");
    // No limit of any kind: such a policy would go by itself.
    expect(detailed).not.toMatch(/limit: soft [0-9]/);
  });

  test("are replaced in place, also by another tunnel", async () => {
    const { kernel } = host;
    await put(kernel, ...POLICIES);
    const moved = { ...OUT, tunnel: { ...TUNNEL, dst: "192.0.2.77" } };
    expect(await put(kernel, moved)).toEqual([]);
    const [found] = (await kernel.xfrmPolicies()).filter(({ direction }) => direction === "out");
    expect(found).toEqual(moved);
    expect((await kernel.xfrmPolicies()).length).toBe(3);
  });

  test("are deleted by selector and direction; gone already is fine", async () => {
    const { kernel, ns } = host;
    await put(kernel, ...POLICIES);
    const gone = { action: "delete", policy: { ...BACK, direction: "fwd" } } as const;
    expect(await kernel.applyXfrm([gone, gone])).toEqual([]);
    expect((await kernel.xfrmPolicies()).map(({ direction }) => direction).sort()).toEqual(["in", "out"]);
    expect(await ns.exec("ip", "xfrm", "policy", "list", "dir", "fwd")).toBe("");
  });

  test("of others are told, as far as they are understood", async () => {
    const { kernel, ns } = host;
    await ns.exec("ip", "xfrm", "policy", "flush");
    await ns.exec(..."ip xfrm policy add src 10.9.0.0/16 dst 0.0.0.0/0 dir out action block".split(" "));
    await ns.exec(
      ..."ip xfrm policy add src fd00::/64 dst fd01::/48 dir in tmpl src 2001:db8::1 dst 2001:db8::2 proto esp reqid 7 mode tunnel".split(
        " ",
      ),
    );
    await ns.exec(
      ..."ip xfrm policy add src 10.8.0.0/16 dst 10.7.0.1/32 dir fwd tmpl proto ah mode transport".split(" "),
    );
    expect(sorted(await kernel.xfrmPolicies())).toEqual(
      sorted([
        { src: "10.9.0.0/16", dst: "0.0.0.0/0", direction: "out" },
        {
          src: "fd00::/64",
          dst: "fd01::/48",
          direction: "in",
          tunnel: { src: "2001:db8::1", dst: "2001:db8::2", reqid: 7 },
        },
        { src: "10.8.0.0/16", dst: "10.7.0.1/32", direction: "fwd" },
      ]),
    );
    await ns.exec("ip", "xfrm", "policy", "flush");
  });

  test("that are refused are named with the kernel's words, and keep none of the others out", async () => {
    const { kernel } = host;
    const bad = { ...OUT, src: "not/an address" };
    const failures = await put(kernel, bad, OUT);
    expect(failures.map(({ change }) => change)).toEqual([{ action: "put", policy: bad }]);
    expect(failures[0]?.text).not.toBe("");
    expect(await kernel.xfrmPolicies()).toEqual([OUT]);
  });

  test("states are listed, none here, and one that is gone may be deleted", async () => {
    const { kernel } = host;
    expect(await kernel.xfrmStates()).toEqual([]);
    const state = { src: "192.0.2.2", dst: "192.0.2.1", spi: 0xc0ffee01, protocol: 50 };
    expect(await kernel.applyXfrm([{ action: "delete", state }])).toEqual([]);
  });
});

/** As `ip` prints them; the second one as a NAT in between makes it. */
const STATES = `src 192.0.2.2 dst 192.0.2.1
	proto esp spi 0xc5f1a2b3 reqid 11 mode tunnel
	replay-window 32 flag af-unspec
	aead rfc4106(gcm(aes)) 0x0 128
	anti-replay context: seq 0x0, oseq 0x0, bitmap 0x00000000
src 192.0.2.1 dst 192.0.2.2
	proto esp spi 0x00000100(256) reqid 11(0x0000000b) mode tunnel
	encap type espinudp sport 4500 dport 4500 addr 0.0.0.0
src 2001:db8::1 dst 2001:db8::2
	proto ah spi 0x0000000a reqid 0 mode transport
`;

test("states are read as `ip` prints them", () => {
  expect(parseStates(STATES)).toEqual([
    { src: "192.0.2.2", dst: "192.0.2.1", spi: 0xc5f1a2b3, protocol: 50, reqid: 11, mode: "tunnel" },
    { src: "192.0.2.1", dst: "192.0.2.2", spi: 256, protocol: 50, reqid: 11, mode: "tunnel" },
    { src: "2001:db8::1", dst: "2001:db8::2", spi: 10, protocol: 51, reqid: 0, mode: "transport" },
  ]);
});

test("messages of any bytes are decoded or refused as malformed, never anything else", () => {
  const arbitrary = fc.uint8Array({ minLength: 0, maxLength: 400 });
  fc.assert(
    fc.property(arbitrary, fc.boolean(), (payload, ofState) => {
      const bytes = new Uint8Array(16 + payload.length);
      new DataView(bytes.buffer).setUint32(0, bytes.length, true);
      bytes.set(payload, 16);
      const cursor = new MessageCursor(bytes);
      cursor.next();
      try {
        if (ofState) decodeState(cursor);
        else decodePolicy(cursor);
      } catch (error) {
        if (!(error instanceof Fault) || error.code !== "NETLINK_MALFORMED") throw error;
      }
    }),
    { numRuns: 2_000 },
  );
});
