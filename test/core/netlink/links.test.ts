import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { addFlannel, FLANNEL, IMPLEMENTATIONS, openHost } from "./host.ts";

setDefaultTimeout(30_000);

describe.each(IMPLEMENTATIONS)("links through %s", (_, open) => {
  test("lists devices as `ip` shows them", async () => {
    await using host = await openHost(open);
    await host.ns.ip("link add br0 type bridge");
    await host.ns.ip("link set far0 master br0");
    const links = await host.kernel.links();
    const shown = await host.ns.json("ip", "-j", "-d", "link", "show");
    expect(links.map((link) => [link.index, link.name, link.mtu, link.mac, link.type])).toEqual(
      shown.map((link) => [link.ifindex, link.ifname, link.mtu, link.address, link.linkinfo?.info_kind]),
    );
    const byName = Object.fromEntries(links.map((link) => [link.name, link]));
    expect(byName.lo).toMatchObject({ loopback: true, up: true, running: true });
    expect(byName.br0).toMatchObject({ up: false, running: false, loopback: false });
    expect(byName.far0).toMatchObject({ master: byName.br0!.index, lower: byName.eth0!.index, up: true });
    expect(await host.kernel.link("far0")).toEqual(byName.far0!);
  });

  test("sees a lost carrier", async () => {
    await using host = await openHost(open);
    await host.ns.ip("link set far0 down");
    expect(await host.kernel.link("eth0")).toMatchObject({ up: true, running: false });
  });

  test("names no lower device of another namespace", async () => {
    await using host = await openHost(open);
    await using other = await openHost(open, "other");
    await host.ns.ip(`link set far0 netns ${other.ns.name} name moved`);
    expect((await host.kernel.link("eth0"))?.lower).toBeUndefined();
  });

  test("a device that does not exist is undefined", async () => {
    await using host = await openHost(open);
    expect(await host.kernel.link("flannel.1")).toBeUndefined();
    expect(await host.kernel.link("a-name-longer-than-any")).toBeUndefined();
    expect(await host.kernel.link("")).toBeUndefined();
  });

  test("creates a vxlan device with everything that was asked for, down", async () => {
    await using host = await openHost(open);
    const vxlan = { ...FLANNEL.vxlan, gbp: true, l2miss: true, group: "239.1.1.1" };
    await host.kernel.createLink({ ...FLANNEL, mtu: 1400, vxlan });
    const [shown] = await host.ns.json("ip", "-j", "-d", "link", "show", "flannel.1");
    expect(shown).toMatchObject({ mtu: 1400, address: FLANNEL.mac, operstate: "DOWN" });
    // No txqlen is shown when it is 0.
    expect(shown.txqlen).toBeUndefined();
    expect(shown.linkinfo.info_data).toMatchObject({
      id: 1,
      link: "eth0",
      local: "192.0.2.1",
      group: "239.1.1.1",
      port: 8472,
      learning: false,
      gbp: true,
      l2miss: true,
    });
    expect(await host.kernel.link("flannel.1")).toMatchObject({
      name: "flannel.1",
      type: "vxlan",
      mtu: 1400,
      mac: FLANNEL.mac,
      up: false,
      vxlan,
    });
  });

  test("lets the kernel choose the port, and switches learning on", async () => {
    await using host = await openHost(open);
    const { port, ...withoutPort } = FLANNEL.vxlan;
    expect(port).toBe(8472);
    await host.kernel.createLink({ ...FLANNEL, vxlan: { ...withoutPort, learning: true } });
    const [shown] = await host.ns.json("ip", "-j", "-d", "link", "show", "flannel.1");
    expect(shown.linkinfo.info_data).toMatchObject({ port: 8472, learning: true });
    expect((await host.kernel.link("flannel.1"))?.vxlan).toMatchObject({
      port: 8472,
      learning: true,
      gbp: false,
    });
  });

  test("creates a vxlan device over IPv6", async () => {
    await using host = await openHost(open);
    const vxlan = { vni: 9, underlay: "eth0", local: "2001:db8::1", port: 4789, group: "2001:db8::99" };
    await host.kernel.createLink({ ...FLANNEL, name: "flannel-v6.9", mtu: 1430, vxlan });
    const [shown] = await host.ns.json("ip", "-j", "-d", "link", "show", "flannel-v6.9");
    expect(shown.linkinfo.info_data).toMatchObject({ local6: "2001:db8::1", remote6: "2001:db8::99" });
    expect((await host.kernel.link("flannel-v6.9"))?.vxlan).toMatchObject(vxlan);
    expect((await host.kernel.links()).find((link) => link.name === "flannel-v6.9")?.vxlan).toMatchObject(
      vxlan,
    );
  });

  test("says why a device cannot be created", async () => {
    await using host = await openHost(open);
    await addFlannel(host.kernel);
    const create = (change: object, vxlan: object = {}) =>
      host.kernel.createLink({ ...FLANNEL, ...change, vxlan: { ...FLANNEL.vxlan, ...vxlan } });
    await expect(create({})).rejects.toMatchObject({ code: "LINK_EXISTS" });
    await expect(create({ name: "other.1" })).rejects.toMatchObject({
      code: "LINK_CONFLICT",
      message: expect.stringContaining('"flannel.1"'),
    });
    await expect(create({ name: "flannel.2" }, { vni: 2, underlay: "eth7" })).rejects.toMatchObject({
      code: "LINK_UNDERLAY_MISSING",
      message: expect.stringContaining('"eth7"'),
    });
    await expect(create({ name: "no/name" }, { vni: 3 })).rejects.toMatchObject({
      code: "NETLINK_BAD_OBJECT",
    });
    await expect(create({ name: "flannel.4", mtu: 99_999 }, { vni: 4 })).rejects.toMatchObject({
      code: "NETLINK_REFUSED",
      message: expect.stringContaining('"flannel.4"'),
    });
  });

  test("sets MTU, MAC and state, one or all at a time", async () => {
    await using host = await openHost(open);
    await host.kernel.createLink(FLANNEL);
    await host.kernel.setLink("flannel.1", { mtu: 1300, mac: "02:00:00:00:00:99", up: true });
    expect(await host.kernel.link("flannel.1")).toMatchObject({
      mtu: 1300,
      mac: "02:00:00:00:00:99",
      up: true,
    });
    await host.kernel.setLink("flannel.1", { mtu: 1280 });
    expect(await host.kernel.link("flannel.1")).toMatchObject({ mtu: 1280, up: true });
    await host.kernel.setLink("flannel.1", { up: false });
    const [shown] = await host.ns.json("ip", "-j", "link", "show", "flannel.1");
    expect(shown).toMatchObject({ mtu: 1280, address: "02:00:00:00:00:99", operstate: "DOWN" });
  });

  test("says why a device cannot be changed", async () => {
    await using host = await openHost(open);
    await expect(host.kernel.setLink("flannel.1", { up: true })).rejects.toMatchObject({
      code: "LINK_MISSING",
    });
    await host.kernel.createLink(FLANNEL);
    await expect(host.kernel.setLink("flannel.1", { mtu: 70_000 })).rejects.toMatchObject({
      code: "NETLINK_REFUSED",
      message: expect.stringMatching(/mtu 70000 on "flannel\.1": EINVAL/),
    });
  });

  test("deletes a device, also one that is gone", async () => {
    await using host = await openHost(open);
    await host.kernel.createLink(FLANNEL);
    await host.kernel.deleteLink("flannel.1");
    expect(await host.kernel.link("flannel.1")).toBeUndefined();
    await host.kernel.deleteLink("flannel.1");
  });
});
