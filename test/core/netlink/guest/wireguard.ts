import { expect } from "bun:test";
import type { WireguardPeerChange, WireguardState } from "../../../../core/netlink/wireguard-objects.ts";
import { Fault } from "../../../../core/observe/fault.ts";
import type { VmTests } from "../../../lab/vm/vm.ts";
import { IMPLEMENTATIONS, openHost } from "../host.ts";

const keyOf = (n: number) => {
  const bytes = Buffer.alloc(32, 1);
  bytes.writeUInt32LE(n);
  return bytes.toString("base64");
};
const NAME = "flannel-wg";

/** What a fault a promise is rejected with says. */
async function faultOf(promise: Promise<unknown>): Promise<Fault> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof Fault) return error;
  throw new Error(`no fault: ${error}`);
}

/** A state whose order of peers and prefixes, which is the kernel's, does not matter. */
function sorted({ peers, ...device }: WireguardState) {
  return {
    ...device,
    peers: peers
      .map((peer) => ({ ...peer, allowedIPs: peer.allowedIPs.toSorted() }))
      .sort((a, b) => (a.publicKey < b.publicKey ? -1 : 1)),
  };
}

/** WireGuard devices, over netlink and by `wg`. */
export function testWireguard(vm: VmTests): void {
  for (const [name, open] of IMPLEMENTATIONS) {
    vm.test(`${name}: what is set is read, and changes touch only what they name`, async () => {
      await using host = await openHost(open, "wg");
      const { kernel, ns } = host;
      expect(await kernel.wireguard(NAME)).toBeUndefined();
      expect(await kernel.wireguard("eth0")).toBeUndefined();
      await kernel.createLink({ name: NAME, type: "wireguard", mtu: 1420 });
      expect(await kernel.link(NAME)).toMatchObject({ type: "wireguard", mtu: 1420, up: false });
      expect(await kernel.wireguard(NAME)).toEqual({ listenPort: 0, peers: [] });
      const [two, three]: [WireguardPeerChange, WireguardPeerChange] = [
        {
          publicKey: keyOf(2),
          presharedKey: keyOf(9),
          endpoint: { address: "192.0.2.2", port: 51820 },
          keepalive: 25,
          allowedIPs: ["10.5.2.0/24", "fd00:5:2::/64"],
        },
        {
          publicKey: keyOf(3),
          endpoint: { address: "2001:db8::3", port: 51821 },
          keepalive: 0,
          allowedIPs: ["10.5.3.0/24"],
        },
      ];
      await kernel.setWireguard(NAME, { privateKey: keyOf(1), listenPort: 51820, peers: [two, three] });
      const publicKey = (await ns.exec("wg", "show", NAME, "public-key")).trim();
      const none = { rxBytes: 0, txBytes: 0 };
      const state = await kernel.wireguard(NAME);
      expect(state && sorted(state)).toEqual(
        sorted({
          publicKey,
          listenPort: 51820,
          peers: [
            { ...two, ...none },
            { ...three, ...none },
          ],
        } as WireguardState),
      );
      // The prefix moves; the secret goes; the peer that is not there is no matter.
      await kernel.setWireguard(NAME, {
        peers: [
          { publicKey: keyOf(77), remove: true },
          { publicKey: keyOf(3), allowedIPs: ["10.5.2.0/24"] },
          { publicKey: keyOf(2), presharedKey: null },
        ],
      });
      const after = await kernel.wireguard(NAME);
      const { presharedKey: _, ...bare } = two;
      expect(after && sorted(after)).toEqual(
        sorted({
          publicKey,
          listenPort: 51820,
          peers: [
            { ...bare, ...none, allowedIPs: ["fd00:5:2::/64"] },
            { ...three, ...none, allowedIPs: ["10.5.2.0/24"] },
          ],
        } as WireguardState),
      );
      // A peer with the key of the device goes.
      await kernel.setWireguard(NAME, { peers: [{ publicKey: keyOf(3), remove: true }] });
      expect((await kernel.wireguard(NAME))?.peers).toHaveLength(1);
      expect((await faultOf(kernel.setWireguard("there-is-none", { listenPort: 1 }))).code).toBe(
        "LINK_MISSING",
      );
    });

    vm.test(`${name}: a port in use is refused when the device comes up, or when it is set`, async () => {
      await using host = await openHost(open, "wgport");
      const { kernel } = host;
      await kernel.createLink({ name: "wg0", type: "wireguard", mtu: 1420 });
      await kernel.setWireguard("wg0", { privateKey: keyOf(1), listenPort: 51820 });
      await kernel.setLink("wg0", { up: true });
      await kernel.createLink({ name: "wg1", type: "wireguard", mtu: 1420 });
      await kernel.setWireguard("wg1", { privateKey: keyOf(2), listenPort: 51820 });
      expect((await faultOf(kernel.setLink("wg1", { up: true }))).message).toContain("EADDRINUSE");
      await kernel.setWireguard("wg1", { listenPort: 51821 });
      await kernel.setLink("wg1", { up: true });
      expect((await faultOf(kernel.setWireguard("wg1", { listenPort: 51820 }))).message).toContain(
        "EADDRINUSE",
      );
    });
  }

  vm.test("rtnetlink: 2,000 peers and 3,000 prefixes of one are written and read back", async () => {
    const [, open] = IMPLEMENTATIONS[0] ?? [];
    if (!open) throw new Error("rtnetlink");
    await using host = await openHost(open, "wgmany");
    const { kernel } = host;
    await kernel.createLink({ name: NAME, type: "wireguard", mtu: 1420 });
    const peers = Array.from(
      { length: 2000 },
      (_, n): WireguardPeerChange => ({
        publicKey: keyOf(n + 10),
        endpoint: { address: "192.0.2.2", port: 51820 },
        allowedIPs:
          n === 700
            ? Array.from({ length: 3000 }, (_, at) => `172.${16 + (at >> 8)}.${at & 255}.0/24`)
            : [`10.${n >> 8}.${n & 255}.0/24`],
      }),
    );
    const started = performance.now();
    await kernel.setWireguard(NAME, { privateKey: keyOf(1), peers });
    const written = performance.now();
    const state = await kernel.wireguard(NAME);
    console.log(
      `written in ${Math.round(written - started)} ms, read in ${Math.round(performance.now() - written)} ms`,
    );
    const byKey = new Map(state?.peers.map((peer) => [peer.publicKey, peer.allowedIPs.toSorted()]));
    expect(byKey.size).toBe(2000);
    for (const { publicKey, allowedIPs = [] } of peers)
      expect(byKey.get(publicKey)).toEqual(allowedIPs.toSorted());
  });
}
