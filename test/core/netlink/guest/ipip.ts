import { expect } from "bun:test";
import { Fault } from "../../../../core/observe/fault.ts";
import type { VmTests } from "../../../lab/vm/vm.ts";
import { IMPLEMENTATIONS, openHost } from "../host.ts";

const LOCAL = { local: "192.0.2.1", ttl: 0, pmtudisc: false };

/** Devices of kind ipip. */
export function testIpip(vm: VmTests): void {
  for (const [name, open] of IMPLEMENTATIONS) {
    vm.test(
      `${name}: makes what was asked for, shows it as the kernel has it, changes and deletes it`,
      async () => {
        await using host = await openHost(open, "ipip");
        const { kernel, ns } = host;
        await kernel.createLink({ name: "flannel.ipip", type: "ipip", mtu: 1480, ipip: LOCAL });
        const [shown] = await ns.json("ip", "-j", "-d", "link", "show", "flannel.ipip");
        expect(shown).toMatchObject({ mtu: 1480, link_type: "ipip", address: "192.0.2.1" });
        const { info_data: info } = shown.linkinfo;
        expect([info.local, info.remote, info.ttl ?? 0, info.pmtudisc ?? false]).toEqual([
          "192.0.2.1",
          "any",
          0,
          false,
        ]);
        expect(await kernel.link("flannel.ipip")).toEqual({
          name: "flannel.ipip",
          index: shown.ifindex,
          type: "ipip",
          mtu: 1480,
          up: false,
          running: false,
          loopback: false,
          ipip: LOCAL,
        });
        // The kernel's own one comes with the module, and is told apart by its ends.
        expect((await kernel.link("tunl0"))?.ipip).toMatchObject({ ttl: 0 });

        await kernel.setLink("flannel.ipip", { mtu: 1400, up: true });
        expect(await kernel.link("flannel.ipip")).toMatchObject({ mtu: 1400, up: true, running: true });
        await kernel.deleteLink("flannel.ipip");
        expect(await kernel.link("flannel.ipip")).toBeUndefined();
      },
    );

    vm.test(`${name}: reads the ends, TTL and PMTU discovery that others set`, async () => {
      await using host = await openHost(open, "ipip2");
      await host.ns.ip("link add tun1 type ipip local 192.0.2.1 remote 192.0.2.2 ttl 64 pmtudisc");
      expect((await host.kernel.link("tun1"))?.ipip).toEqual({
        ...{ local: "192.0.2.1", remote: "192.0.2.2" },
        ...{ ttl: 64, pmtudisc: true },
      });
    });

    vm.test(`${name}: names the tunnel that has the same ends, and one of the same name`, async () => {
      await using host = await openHost(open, "ipip3");
      const { kernel, ns } = host;
      const attempt = () =>
        kernel.createLink({ name: "flannel.ipip", type: "ipip", mtu: 1480, ipip: LOCAL }).then(
          () => undefined,
          (error: unknown) => error as Fault,
        );
      await ns.ip("link add theirs type ipip local 192.0.2.1");
      const taken = await attempt();
      expect(taken).toBeInstanceOf(Fault);
      expect([taken?.code, taken?.message, taken?.hint]).toEqual([
        "LINK_CONFLICT",
        'cannot create "flannel.ipip": device "theirs" holds the same local and remote address (local 192.0.2.1, remote any)',
        "Delete it with `ip link delete theirs`.",
      ]);
      await ns.ip("link delete theirs");
      await ns.ip("link add flannel.ipip type dummy");
      expect((await attempt())?.code).toBe("LINK_EXISTS");
    });
  }
}
