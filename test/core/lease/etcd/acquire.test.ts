import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { EtcdServer } from "../../../lab/etcd.ts";
import { until } from "../../../lab/until.ts";
import { attrsOf, ONE_SUBNET, PREFIX, RANGES, TEST_TIMEOUT_MS, TestNode } from "./node.ts";
import { refusalOf } from "./probe.ts";

setDefaultTimeout(TEST_TIMEOUT_MS);

const LONG = { ttlMs: 60_000, marginMs: 20_000 };
const KEY = (key: string) => `${PREFIX}/subnets/${key}`;

describe.concurrent("acquire", () => {
  test("a fresh lease: upstream's bytes with our fields after them, and an etcd lease of the asked time", async () => {
    await using etcd = await EtcdServer.start();
    await using node = await TestNode.open(7, etcd.endpoint, LONG);
    const held = await node.acquire();
    expect(held.origin).toBe("fresh");
    expect(held.reservation).toBe(false);
    const stored = await etcd.get(KEY(held.lease.key));
    expect(stored?.value).toBe(
      '{"PublicIP":"192.0.2.7","PublicIPv6":null,"BackendType":"vxlan",' +
        '"BackendData":{"VNI":1,"VtepMAC":"02:00:00:00:00:07"},"NodeID":"000000000007-000000000007","BootID":"boot-7"}',
    );
    const ttl = await etcd.ctl("lease", "timetolive", BigInt(stored?.lease ?? 0).toString(16));
    expect(ttl).toContain("granted with TTL(60s)");
    // The whole start in few calls: the list, the etcd lease, the transaction.
    expect(node.store.stats.requests).toEqual({ range: 1, leaseGrant: 1, txn: 1 });
  });

  test("coming back: same key and no write at all; a new address takes the own key over", async () => {
    await using etcd = await EtcdServer.start();
    await using first = await TestNode.open(1, etcd.endpoint, LONG);
    const { lease } = await first.acquire();
    await first.stop();
    const before = await etcd.get(KEY(lease.key));

    await using again = await TestNode.open(1, etcd.endpoint, LONG);
    const held = await again.acquire();
    expect(held.origin).toBe("node-id");
    expect(await etcd.get(KEY(lease.key))).toEqual(before);
    await again.stop();

    await using moved = await TestNode.open(1, etcd.endpoint, LONG);
    const taken = await moved.acquire(RANGES, { publicIP: "198.51.100.1", bootId: "boot-next" });
    expect(taken.lease.key).toBe(lease.key);
    const after = await etcd.get(KEY(lease.key));
    expect(after?.value).toContain('"PublicIP":"198.51.100.1"');
    expect(after?.lease).toBe(before?.lease ?? "");
  });

  test("upstream's lease is recognised by the address and moves to our time to live", async () => {
    await using etcd = await EtcdServer.start();
    const granted = /lease (\w+) granted/.exec(await etcd.ctl("lease", "grant", "86400"))?.[1] ?? "";
    await etcd.ctl(
      "put",
      "--lease",
      granted,
      KEY("10.5.9.0-24"),
      '{"PublicIP":"192.0.2.3","PublicIPv6":null}',
    );
    await using node = await TestNode.open(3, etcd.endpoint, LONG);
    const held = await node.acquire();
    expect(held.lease.key).toBe("10.5.9.0-24");
    expect(held.origin).toBe("public-ip");
    const stored = await etcd.get(KEY("10.5.9.0-24"));
    expect(stored?.value).toContain('"NodeID":"000000000003-000000000003"');
    expect(BigInt(stored?.lease ?? 0)).not.toBe(BigInt(`0x${granted}`));
  });

  test("a reservation stays without an etcd lease over three starts and is never renewed", async () => {
    await using etcd = await EtcdServer.start();
    await etcd.ctl("put", KEY("10.5.44.0-24"), '{"PublicIP":"192.0.2.4"}');
    for (let start = 0; start < 3; start += 1) {
      await using node = await TestNode.open(4, etcd.endpoint, LONG);
      const held = await node.join();
      expect(held).toMatchObject({
        origin: "reservation",
        reservation: true,
        lease: { key: "10.5.44.0-24" },
      });
      await node.untilState("held");
      await node.store.updateAttrs(
        attrsOf(4, { backendData: { VNI: 1, VtepMAC: `02:00:00:00:00:0${start}` } }),
        node.signal,
      );
      expect((await etcd.get(KEY("10.5.44.0-24")))?.lease).toBe("0");
      expect(node.store.stats.requests.leaseGrant ?? 0).toBe(0);
      expect(node.store.stats.requests.leaseKeepAlive ?? 0).toBe(0);
      // A reservation is not ours to give back.
      await node.store.release();
    }
    expect(await etcd.keys(KEY(""))).toEqual([KEY("10.5.44.0-24")]);
  });

  test("another node with our address is refused by name, and nothing is written", async () => {
    await using etcd = await EtcdServer.start();
    await using first = await TestNode.open(5, etcd.endpoint, LONG);
    const { lease } = await first.acquire();
    await using second = await TestNode.open(6, etcd.endpoint, LONG);
    const before = await etcd.revision();
    const refused = await refusalOf(second.acquire(RANGES, { publicIP: "192.0.2.5" }));
    expect(refused).toMatchObject({ code: "LEASE_CLASH" });
    expect((refused as Error).message).toMatch(
      /000000000006-000000000006.*000000000005-000000000005.*10\.5\./,
    );
    expect(await etcd.revision()).toBe(before);
    expect((await etcd.get(KEY(lease.key)))?.value).toContain("000000000005");
  });

  test("the subnet of the last run is taken again, unless somebody else has it", async () => {
    await using etcd = await EtcdServer.start();
    await using first = await TestNode.open(1, etcd.endpoint, LONG);
    expect((await first.acquire(RANGES, {}, { ipv4: "10.5.95.0/24" })).origin).toBe("previous");
    await using second = await TestNode.open(2, etcd.endpoint, LONG);
    const held = await second.acquire(RANGES, {}, { ipv4: "10.5.95.0/24" });
    expect(held.origin).toBe("fresh");
    expect(held.lease.key).not.toBe("10.5.95.0-24");
    expect(second.log.text).toContain("192.0.2.1");
    expect(second.log.lines.filter((line) => line.level === "warn")).toHaveLength(1);
  });

  test("a key that no longer fits the network config is given up in the same transaction", async () => {
    await using etcd = await EtcdServer.start();
    await using first = await TestNode.open(1, etcd.endpoint, LONG);
    const old = await first.acquire();
    await first.stop();
    await using again = await TestNode.open(1, etcd.endpoint, LONG);
    const changed = {
      ipv4: { network: "10.6.0.0/16", subnetLen: 24, subnetMin: "10.6.1.0", subnetMax: "10.6.255.0" },
    };
    const held = await again.acquire(changed);
    expect(held.lease.key).toStartWith("10.6.");
    expect(held.lease.key).not.toBe(old.lease.key);
    expect(await etcd.keys(KEY(""))).toEqual([KEY(held.lease.key)]);
  });

  test("40 nodes race for 40 subnets: all distinct, the 41st is told the counts", async () => {
    await using etcd = await EtcdServer.start();
    const ranges = {
      ipv4: { network: "10.5.0.0/16", subnetLen: 24, subnetMin: "10.5.1.0", subnetMax: "10.5.40.0" },
    };
    const nodes = await Promise.all(
      Array.from({ length: 40 }, (_, n) => TestNode.open(n + 1, etcd.endpoint, LONG)),
    );
    try {
      // A barrier: everybody has a connection before anybody chooses.
      await etcd.ctl("put", `${PREFIX}/config`, "{}");
      await Promise.all(nodes.map((node) => node.store.readConfig(node.signal)));
      const start = performance.now();
      const held = await Promise.all(nodes.map((node) => node.acquire(ranges)));
      const took = performance.now() - start;
      expect(new Set(held.map(({ lease }) => lease.key)).size).toBe(40);
      expect(took).toBeLessThan(5_000);
      expect((await etcd.keys(KEY(""))).length).toBe(40);
      const most = Math.max(...nodes.map((node) => node.store.stats.requests.txn ?? 0));
      expect(most).toBeLessThanOrEqual(40);

      await using late = await TestNode.open(41, etcd.endpoint, LONG);
      const refused = await refusalOf(late.acquire(ranges));
      expect(refused).toMatchObject({ code: "LEASE_EXHAUSTED" });
      expect((refused as Error).message).toMatch(/40 of 40 in use/);
      // No etcd lease is left lying around.
      const leases = (await etcd.ctl("lease", "list")).split("\n").length - 1;
      expect(leases).toBe(40);
    } finally {
      await Promise.all(nodes.map((node) => node.stop()));
    }
  });

  test("5 nodes race for one subnet: one gets it, the losers leave no etcd lease behind", async () => {
    await using etcd = await EtcdServer.start();
    const nodes = await Promise.all(
      Array.from({ length: 5 }, (_, n) => TestNode.open(n + 1, etcd.endpoint, LONG)),
    );
    try {
      await etcd.ctl("put", `${PREFIX}/config`, "{}");
      await Promise.all(nodes.map((node) => node.store.readConfig(node.signal)));
      const results = await Promise.allSettled(nodes.map((node) => node.acquire(ONE_SUBNET)));
      const refused = results.filter((result) => result.status === "rejected");
      expect(refused.map(({ reason }) => reason.code)).toEqual(Array(4).fill("LEASE_EXHAUSTED"));
      expect((await etcd.ctl("lease", "list")).split("\n").length - 1).toBe(1);
      // At least one of them lost a race, else nothing was shown.
      expect(nodes.filter((node) => (node.store.stats.requests.leaseGrant ?? 0) > 0).length).toBeGreaterThan(
        1,
      );
    } finally {
      await Promise.all(nodes.map((node) => node.stop()));
    }
  });

  test("dual stack: nodes whose keys differ but whose subnets overlap do not both stay", async () => {
    await using etcd = await EtcdServer.start();
    // 8 IPv4 blocks and 8 IPv6 blocks: independent choices collide in one family almost for sure.
    const ranges = {
      ipv4: { network: "10.5.0.0/16", subnetLen: 24, subnetMin: "10.5.1.0", subnetMax: "10.5.8.0" },
      ipv6: { network: "fd00::/48", subnetLen: 64, subnetMin: "fd00:0:0:1::", subnetMax: "fd00:0:0:8::" },
    };
    const nodes = await Promise.all(
      Array.from({ length: 8 }, (_, n) => TestNode.open(n + 1, etcd.endpoint, LONG)),
    );
    try {
      const held = await Promise.all(
        nodes.map((node) => node.acquire(ranges, { publicIPv6: `fd99::${node.number}` })),
      );
      expect(new Set(held.map(({ lease }) => lease.subnets.ipv4)).size).toBe(8);
      expect(new Set(held.map(({ lease }) => lease.subnets.ipv6)).size).toBe(8);
      expect((await etcd.keys(KEY(""))).length).toBe(8);
    } finally {
      await Promise.all(nodes.map((node) => node.stop()));
    }
  });

  test("etcd is down at start: waited for with one finding", async () => {
    await using etcd = await EtcdServer.start();
    await etcd.stop();
    await using node = await TestNode.open(1, etcd.endpoint, LONG);
    const acquiring = node.acquire();
    await until(() => node.health.has("ETCD_UNREACHABLE"), { message: "no finding" });
    await etcd.restart();
    await acquiring;
    expect(node.health.list()).toEqual([]);
    expect(node.log.lines.filter((line) => line.level === "error")).toHaveLength(1);
  });

  test("junk below subnets/ occupies what its key names, and disturbs nothing else", async () => {
    await using etcd = await EtcdServer.start();
    await etcd.ctl("put", KEY("10.5.1.0-24"), "");
    await etcd.ctl("put", KEY(".lock"), "x");
    await using node = await TestNode.open(1, etcd.endpoint, LONG);
    expect(await refusalOf(node.acquire(ONE_SUBNET))).toMatchObject({ code: "LEASE_EXHAUSTED" });
    expect((await node.acquire()).lease.key).not.toBe("10.5.1.0-24");
  });
});
