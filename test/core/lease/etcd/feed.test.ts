import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { EtcdServer } from "../../../lab/etcd.ts";
import { EtcdCluster } from "../../../lab/etcd-cluster.ts";
import { TcpProxy } from "../../../lab/proxy.ts";
import { RpcProxy } from "../../../lab/rpc-proxy.ts";
import { until } from "../../../lab/until.ts";
import { PREFIX, TEST_TIMEOUT_MS, TestNode } from "./node.ts";

setDefaultTimeout(TEST_TIMEOUT_MS);

const KEY = (key: string) => `${PREFIX}/subnets/${key}`;
const value = (ip: string, mac = "02:00:00:00:00:01") =>
  `{"PublicIP":"${ip}","PublicIPv6":null,"BackendType":"vxlan","BackendData":{"VNI":1,"VtepMAC":"${mac}"}}`;

describe.concurrent("watching the peers", () => {
  test("snapshot, then changes; the list made for the own lease is used again", async () => {
    await using etcd = await EtcdServer.start();
    await etcd.ctl("put", KEY("10.5.7.0-24"), value("192.0.2.77"));
    await using node = await TestNode.open(1, etcd.endpoint);
    const { lease } = await node.join();
    await node.untilKeys(["10.5.7.0-24", lease.key]);
    expect(node.updates[0]?.type).toBe("snapshot");
    await etcd.ctl("put", KEY("10.5.8.0-24"), value("192.0.2.78"));
    await node.untilKeys(["10.5.7.0-24", "10.5.8.0-24", lease.key]);
    await etcd.ctl("del", KEY("10.5.7.0-24"));
    await node.untilKeys(["10.5.8.0-24", lease.key]);
    // One list in all; the other reads are the keeper's looks at the own key.
    expect(node.store.stats.relists).toBe(0);
    expect(node.store.stats.requests.watch).toBe(1);
  });

  test("the list made for the own lease is the only one", async () => {
    await using etcd = await EtcdServer.start();
    await using node = await TestNode.open(1, etcd.endpoint);
    const { lease } = await node.acquire();
    node.watch();
    await node.untilKeys([lease.key]);
    expect(node.store.stats.requests).toEqual({ range: 1, leaseGrant: 1, txn: 1, watch: 1 });
  });

  test("etcd comes back empty, and no keeper is there to notice: listed anew, removals held back", async () => {
    await using etcd = await EtcdServer.start();
    for (const n of [7, 8, 9]) await etcd.ctl("put", KEY(`10.5.${n}.0-24`), value(`192.0.2.${n}`));
    await using node = await TestNode.open(1, etcd.endpoint, { holdDeletesMs: 1_500 });
    node.watch();
    await node.untilKeys(["10.5.7.0-24", "10.5.8.0-24", "10.5.9.0-24"]);
    await etcd.restart({ wipe: true });
    await etcd.ctl("put", KEY("10.5.7.0-24"), value("192.0.2.7"));
    await until(() => node.store.stats.relists === 1, { message: () => node.log.text });
    expect([...node.peers.keys()].sort()).toEqual(["10.5.7.0-24", "10.5.8.0-24", "10.5.9.0-24"]);
    await node.untilKeys(["10.5.7.0-24"]);
  });

  test("A8: compaction while away: one list, exact set, few lines; the own key lost meanwhile is taken back", async () => {
    await using etcd = await EtcdServer.start();
    await using proxy = await TcpProxy.start(etcd.clientPort);
    await using node = await TestNode.open(1, proxy.endpoint, { holdDeletesMs: 300 });
    const { lease } = await node.join();
    await etcd.ctl("put", KEY("10.5.200.0-24"), value("192.0.2.200"));
    await etcd.ctl("put", KEY("10.5.201.0-24"), value("192.0.2.201"));
    await node.untilKeys([lease.key, "10.5.200.0-24", "10.5.201.0-24"]);
    const lines = node.log.lines.length;
    proxy.refuse();
    // A11: one peer changes its MAC unseen; another goes, a third comes, ours is deleted.
    await etcd.ctl("put", KEY("10.5.200.0-24"), value("192.0.2.200", "02:00:00:00:00:99"));
    await etcd.ctl("del", KEY("10.5.201.0-24"));
    await etcd.ctl("put", KEY("10.5.202.0-24"), value("192.0.2.202"));
    await etcd.ctl("del", KEY(lease.key));
    await etcd.ctl("compact", String(await etcd.revision()));
    proxy.pass();
    await node.untilKeys([lease.key, "10.5.200.0-24", "10.5.202.0-24"]);
    expect(node.peers.get("10.5.200.0-24")?.attrs.backendData).toEqual({
      VNI: 1,
      VtepMAC: "02:00:00:00:00:99",
    });
    expect((await etcd.get(KEY(lease.key)))?.value).toContain("192.0.2.1");
    expect(node.store.stats.relists).toBe(1);
    await until(() => node.health.list().length === 0, { message: () => JSON.stringify(node.health.list()) });
    const told = node.log.lines.slice(lines).filter((line) => line.level !== "debug");
    expect(told.length).toBeLessThanOrEqual(8);
    // Live again.
    await etcd.ctl("put", KEY("10.5.203.0-24"), value("192.0.2.203"));
    await node.untilKeys([lease.key, "10.5.200.0-24", "10.5.202.0-24", "10.5.203.0-24"]);
  });

  test("lost streams are taken up where they ended, without a list and without a gap", async () => {
    await using etcd = await EtcdServer.start();
    await using proxy = await TcpProxy.start(etcd.clientPort);
    await using node = await TestNode.open(1, proxy.endpoint);
    const { lease } = await node.join();
    const keys = [lease.key];
    for (let n = 100; n < 112; n += 1) {
      const key = `10.5.${n}.0-24`;
      if (key === lease.key) continue;
      proxy.cut();
      await etcd.ctl("put", KEY(key), value(`192.0.2.${n}`));
      keys.push(key);
    }
    await node.untilKeys(keys, 15_000);
    expect(node.store.stats.relists).toBe(0);
    expect(node.store.stats.reconnects).toBeGreaterThan(0);
  });

  test("A12: junk keys, junk values and neighbours of the prefix change no peer, and are told once", async () => {
    await using etcd = await EtcdServer.start();
    const peers = ["10.5.201.0-24", "10.5.202.0-24", "10.5.203.0-24"];
    for (const [n, key] of peers.entries()) await etcd.ctl("put", KEY(key), value(`192.0.2.${201 + n}`));
    await using proxy = await TcpProxy.start(etcd.clientPort);
    await using node = await TestNode.open(1, proxy.endpoint, { holdDeletesMs: 100 });
    const { lease } = await node.join();
    await node.untilKeys([lease.key, ...peers]);
    const table = node.table;
    const junk: [string, string][] = [
      [KEY(".lock"), "x"],
      [KEY("10.5.9.0-33"), value("192.0.2.9")],
      [KEY("x10.5.9.0-24"), value("192.0.2.9")],
      [KEY("10.5.210.0-24"), ""],
      [KEY("10.5.211.0-24"), "not json"],
      // A peer's own value goes bad: it stays as it was.
      [KEY("10.5.202.0-24"), "{"],
      [`${PREFIX}/subnets-old/10.5.202.0-24`, value("192.0.2.9")],
      [`${PREFIX}/subnets`, "x"],
    ];
    for (const [key, text] of junk) await etcd.ctl("put", key, text);
    // A mark behind the junk: once it is known, the junk has been read.
    await etcd.ctl("put", KEY("10.5.220.0-24"), value("192.0.2.220"));
    await node.untilKeys([lease.key, ...peers, "10.5.220.0-24"]);
    expect(node.store.stats.badEntries).toBe(6);
    expect(node.health.list().filter(({ code }) => code === "LEASE_ENTRY_BAD")).toHaveLength(6);

    // The same by a list instead of events.
    proxy.refuse();
    await etcd.ctl("put", `${PREFIX}/other`, "so that the next revision to watch is gone");
    await etcd.ctl("put", KEY("10.5.221.0-24"), value("192.0.2.221"));
    await etcd.ctl("compact", String(await etcd.revision()));
    proxy.pass();
    await node.untilKeys([lease.key, ...peers, "10.5.220.0-24", "10.5.221.0-24"]);
    expect(node.store.stats.relists).toBe(1);
    expect(node.store.stats.badEntries).toBe(6);

    for (const [key] of junk) if (key !== KEY("10.5.202.0-24")) await etcd.ctl("del", key);
    await etcd.ctl("put", KEY("10.5.202.0-24"), value("192.0.2.202"));
    await etcd.ctl("del", KEY("10.5.220.0-24"));
    await etcd.ctl("del", KEY("10.5.221.0-24"));
    await node.untilKeys([lease.key, ...peers]);
    expect(node.table).toBe(table);
    await until(() => node.health.list().length === 0, { message: () => JSON.stringify(node.health.list()) });
    expect(
      node.log.lines.filter((line) => line.fields.code === "LEASE_ENTRY_BAD" && line.level === "warn"),
    ).toHaveLength(6);
  });

  test("A13: lists that fail at first are tried again", async () => {
    await using etcd = await EtcdServer.start();
    await etcd.ctl("put", KEY("10.5.7.0-24"), value("192.0.2.77"));
    await using proxy = await RpcProxy.start(etcd.clientPort);
    let left = 2;
    proxy.refuse = (call) => call.endsWith("/Range") && left-- > 0;
    await using node = await TestNode.open(1, proxy.endpoint);
    node.watch();
    await node.untilKeys(["10.5.7.0-24"]);
    expect(node.health.list().length).toBeLessThanOrEqual(1);
  });

  test("A39: 1,000 leases: few calls at start; a slow reader gets a burst as one update per key", async () => {
    await using etcd = await EtcdServer.start();
    await fill(etcd, 1_000);
    await using node = await TestNode.open(1, etcd.endpoint, { ttlMs: 60_000, marginMs: 20_000 });
    await node.acquire();
    const updates = node.store.watchPeers(node.signal);
    const first = await updates.next();
    expect(first.value?.type === "snapshot" && first.value.leases.length).toBe(1_000);
    // A node of 1,000 peers starts in fewer than ten calls.
    const calls = Object.values(node.store.stats.requests).reduce((sum, calls) => sum + calls, 0);
    expect(calls).toBeLessThan(10);
    // Nobody reads while every key is written anew, three times; the next update is one change per key.
    await until(() => node.store.stats.requests.watch === 1, { message: "no watch" });
    for (let round = 0; round < 3; round += 1) await fill(etcd, 1_000, `02:00:00:00:01:0${round}`);
    await until(() => node.store.stats.watchEvents >= 3_000, {
      message: () => `${node.store.stats.watchEvents} events`,
      deadline: 20_000,
    });
    const burst = await updates.next();
    expect(burst.value?.type === "changes" && burst.value.puts.length).toBe(1_001);
  });

  test("three members: each killed in turn, every change arrives, with one of them frozen too", async () => {
    await using cluster = await EtcdCluster.start(3);
    await using node = await TestNode.open(1, cluster.endpoints);
    const { lease } = await node.join();
    const keys = [lease.key];
    for (const [n, member] of cluster.members.entries()) {
      const other = cluster.members[(n + 1) % 3];
      if (n === 2) member.pause();
      else await member.stop("SIGKILL");
      const key = `10.5.${[11, 12, 13].filter((octet) => `10.5.${octet}.0-24` !== lease.key)[n] ?? 14}.0-24`;
      await until(async () => (await other?.tryCtl("put", KEY(key), value(`192.0.2.${11 + n}`)))?.ok, {
        message: "cluster has no leader",
        deadline: 15_000,
      });
      keys.push(key);
      await node.untilKeys(keys, 20_000);
      if (n === 2) member.resume();
      else await member.restart();
    }
    expect(node.store.stats.relists).toBe(0);
    await node.untilState("held");
  });
});

/** Writes `count` leases (10.64.0.0/24 and following) in a few transactions. */
async function fill(etcd: EtcdServer, count: number, mac = "02:00:00:00:00:01"): Promise<void> {
  const operations = Array.from({ length: count }, (_, n) => {
    const text = value(`203.0.${n >> 8}.${n & 255}`, mac);
    return `put ${KEY(`10.${64 + (n >> 8)}.${n & 255}.0-24`)} ${JSON.stringify(text)}`;
  });
  // etcd takes 128 operations in one transaction (--max-txn-ops).
  for (let at = 0; at < count; at += 128) {
    await etcd.txn(operations.slice(at, at + 128));
  }
}
