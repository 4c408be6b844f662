import { describe, expect, test } from "bun:test";
import { addFlannel, IMPLEMENTATIONS, openHost } from "./host.ts";

describe.each(IMPLEMENTATIONS)("transmit checksum offload over %s", (_, open) => {
  test("is read and set as ethtool does", async () => {
    await using host = await openHost(open);
    await addFlannel(host.kernel);
    const shown = async () =>
      /^tx-checksum-ip-generic: (\w+)/m.exec(
        (await host.ns.exec("ethtool", "-k", "flannel.1")).replace(/^\s+/gm, ""),
      )?.[1];
    expect(await host.kernel.txChecksum("flannel.1")).toBe(true);
    await host.kernel.setTxChecksum("flannel.1", false);
    expect(await shown()).toBe("off");
    expect(await host.kernel.txChecksum("flannel.1")).toBe(false);
    await host.kernel.setTxChecksum("flannel.1", false);
    await host.kernel.setTxChecksum("flannel.1", true);
    expect(await shown()).toBe("on");
  });

  test("a missing device is named, and a fixed offload is refused", async () => {
    await using host = await openHost(open);
    for (const dev of ["none", "a-name-longer-than-any"]) {
      await expect(host.kernel.txChecksum(dev)).rejects.toMatchObject({ code: "LINK_MISSING" });
      await expect(host.kernel.setTxChecksum(dev, false)).rejects.toMatchObject({ code: "LINK_MISSING" });
    }
    await expect(host.kernel.setTxChecksum("lo", false)).rejects.toMatchObject({
      code: "NETLINK_REFUSED",
      message: expect.stringContaining('"lo"'),
    });
  });
});
