import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { EtcdServer } from "../../../lab/etcd.ts";
import { TcpProxy } from "../../../lab/proxy.ts";
import { RpcProxy } from "../../../lab/rpc-proxy.ts";
import { until } from "../../../lab/until.ts";
import { attrsOf, ONE_SUBNET, PREFIX, RANGES, TEST_TIMEOUT_MS, TestNode } from "./node.ts";
import { refusalOf } from "./probe.ts";

setDefaultTimeout(TEST_TIMEOUT_MS);

const KEY = (key: string) => `${PREFIX}/subnets/${key}`;
/** Short life: 2 s, renewed from half of it on. */
const SHORT = { ttlMs: 2_000, marginMs: 1_200 };

describe.concurrent("keep", () => {
  test("A1: renewal needs no watch and makes no watch event", async () => {
    await using etcd = await EtcdServer.start();
    await using proxy = await RpcProxy.start(etcd.clientPort);
    proxy.refuse = (call) => call.endsWith("/Watch");
    await using node = await TestNode.open(1, proxy.endpoint, SHORT);
    const held = await node.join();
    const before = await etcd.get(KEY(held.lease.key));
    // Five lives of the lease, counted in renewals: each is one request and no write.
    await until(() => node.store.stats.renewals >= 10, { message: () => node.log.text, deadline: 20_000 });
    expect(await etcd.get(KEY(held.lease.key))).toEqual(before);
    expect(node.state?.state).toBe("held");
    expect(node.health.list().map((finding) => finding.code)).toEqual(["ETCD_UNREACHABLE"]);
    // One line for the dead watch, however often it was tried.
    expect(node.log.lines.filter((line) => line.level === "error")).toHaveLength(1);

    // The key is looked after all the same.
    await etcd.ctl("del", KEY(held.lease.key));
    await until(() => etcd.get(KEY(held.lease.key)), { message: "not taken back without watch" });
  });

  test("A1: without watch the key is looked at long before its renewal is due", async () => {
    await using etcd = await EtcdServer.start();
    await using proxy = await RpcProxy.start(etcd.clientPort);
    proxy.refuse = (call) => call.endsWith("/Watch");
    await using node = await TestNode.open(1, proxy.endpoint, { ttlMs: 12_000, marginMs: 1_000 });
    const { lease } = await node.join();
    await node.untilState("held");
    await etcd.ctl("del", KEY(lease.key));
    await until(() => etcd.get(KEY(lease.key)), { message: "not taken back", deadline: 6_000 });
    expect(node.store.stats.renewals).toBe(0);
  });

  test("A1: a margin that leaves no time is refused at start", async () => {
    expect(
      await refusalOf(TestNode.open(1, "http://127.0.0.1:1", { ttlMs: 5_000, marginMs: 5_000 })),
    ).toMatchObject({
      code: "LEASE_MARGIN",
    });
  });

  test("A2: etcd frozen for longer than the lease lives: the same subnet, kept by the peers meanwhile", async () => {
    await using etcd = await EtcdServer.start();
    await using one = await TestNode.open(1, etcd.endpoint, SHORT);
    await using two = await TestNode.open(2, etcd.endpoint, SHORT);
    const keys = [(await one.join()).lease.key, (await two.join()).lease.key];
    await one.untilKeys(keys);
    await two.untilKeys(keys);
    etcd.pause();
    await one.untilState("renewal-failing", 8_000);
    await until(() => one.health.list().some((finding) => finding.severity === "error"), {
      message: "no error after the lease ran out",
      deadline: 12_000,
    });
    const size = one.updates.length;
    etcd.resume();
    await one.untilState("held");
    await two.untilState("held");
    await until(async () => (await etcd.keys(KEY(""))).length === 2, { message: "keys are not back" });
    await one.untilKeys(keys);
    // Not even for a moment was a peer gone.
    const removed = one.updates
      .slice(size)
      .filter((update) => update.type === "changes" && update.deletes.length > 0);
    expect(removed).toEqual([]);
    await until(() => one.health.list().length === 0, { message: () => JSON.stringify(one.health.list()) });
  });

  test("A2: etcd comes back empty: both keys are written again, both peers stay", async () => {
    await using etcd = await EtcdServer.start();
    await using one = await TestNode.open(1, etcd.endpoint, SHORT);
    await using two = await TestNode.open(2, etcd.endpoint, SHORT);
    const keys = [(await one.join()).lease.key, (await two.join()).lease.key].sort();
    await one.untilKeys(keys);
    await two.untilKeys(keys);
    await etcd.restart({ wipe: true });
    await until(async () => (await etcd.keys(KEY(""))).join() === keys.map(KEY).join(), {
      message: async () => `keys are not back: ${await etcd.keys(KEY(""))}`,
    });
    await one.untilState("held");
    await one.untilKeys(keys);
    await two.untilKeys(keys);
    // The watch of the new store works.
    await etcd.ctl("put", KEY("10.5.250.0-24"), '{"PublicIP":"192.0.2.250"}');
    await one.untilKeys([...keys, "10.5.250.0-24"]);
    await two.untilKeys([...keys, "10.5.250.0-24"]);
    const removed = one.updates.filter(
      (update) => update.type === "changes" && update.deletes.includes(keys[1] ?? ""),
    );
    expect(removed).toEqual([]);
  });

  test("A4: the subnet went to another node during a partition: conflict, nothing overwritten, taken back when free", async () => {
    await using etcd = await EtcdServer.start();
    await using proxy = await TcpProxy.start(etcd.clientPort);
    await using one = await TestNode.open(1, proxy.endpoint, SHORT);
    const held = await one.join(ONE_SUBNET);
    await one.untilState("held");
    proxy.refuse();
    await one.untilState("renewal-failing");
    await until(async () => (await etcd.get(KEY(held.lease.key))) === undefined, { message: "not expired" });
    await using two = await TestNode.open(2, etcd.endpoint, SHORT);
    await two.join(ONE_SUBNET);
    const theirs = await etcd.get(KEY(held.lease.key));
    proxy.pass();
    const state = await one.untilState("conflict");
    expect(state).toMatchObject({ holder: { attrs: { publicIP: "192.0.2.2" } } });
    const [finding] = one.health.list().filter(({ code }) => code === "LEASE_CONFLICT");
    for (const name of ["192.0.2.1", "000000000001-000000000001", "192.0.2.2", "000000000002-000000000002"]) {
      expect(finding?.text).toContain(name);
    }
    expect(
      await refusalOf(one.store.updateAttrs(attrsOf(1, { backendType: "host-gw" }), one.signal)),
    ).toMatchObject({
      code: "LEASE_CONFLICT",
    });
    // Many looks later nothing has been written: the other node only renews.
    await until(() => two.store.stats.renewals >= 6, { message: "no renewals", deadline: 20_000 });
    expect(await etcd.get(KEY(held.lease.key))).toEqual(theirs);
    expect(one.state?.state).toBe("conflict");

    await two.store.release();
    await two.stop();
    await one.untilState("held");
    expect((await etcd.get(KEY(held.lease.key)))?.value).toContain("192.0.2.1");
    await until(() => one.health.list().length === 0, { message: () => JSON.stringify(one.health.list()) });
  });

  test("A5: one disk, two living machines: one conflict that names both, no tug of war", async () => {
    await using etcd = await EtcdServer.start();
    await using original = await TestNode.open(1, etcd.endpoint, SHORT);
    const held = await original.join();
    await original.untilState("held");
    await using clone = await TestNode.open(1, etcd.endpoint, SHORT);
    await clone.join(RANGES, { publicIP: "198.51.100.9", bootId: "boot-of-the-clone" });
    await original.untilState("conflict");
    const [finding] = original.health.list();
    expect(finding?.text).toContain("192.0.2.1");
    expect(finding?.text).toContain("198.51.100.9");
    const stored = await etcd.get(KEY(held.lease.key));
    await until(() => clone.store.stats.renewals >= 4, { message: "no renewals", deadline: 15_000 });
    expect(await etcd.get(KEY(held.lease.key))).toEqual(stored);
    expect(clone.state?.state).toBe("held");
  });

  test("the key is deleted, or deleted and written by another: taken back, or left alone", async () => {
    await using etcd = await EtcdServer.start();
    await using node = await TestNode.open(1, etcd.endpoint, SHORT);
    const { lease } = await node.join();
    await node.untilState("held");
    await etcd.ctl("del", KEY(lease.key));
    await until(async () => (await etcd.get(KEY(lease.key)))?.value.includes("192.0.2.1"), {
      message: "not back",
    });
    // Both within one moment: the deletion must not be acted upon.
    await etcd.ctl("del", KEY(lease.key));
    await etcd.ctl("put", KEY(lease.key), '{"PublicIP":"192.0.2.99"}');
    const found = await etcd.get(KEY(lease.key));
    if (found?.value.includes("192.0.2.99")) {
      await node.untilState("conflict");
      expect((await etcd.get(KEY(lease.key)))?.value).toContain("192.0.2.99");
    }
  });

  test("upstream's daemon wrote our key under our address: set right once, etcd lease kept", async () => {
    await using etcd = await EtcdServer.start();
    await using node = await TestNode.open(1, etcd.endpoint, SHORT);
    const { lease } = await node.join();
    await node.untilState("held");
    const granted = /lease (\w+) granted/.exec(await etcd.ctl("lease", "grant", "60"))?.[1] ?? "";
    await etcd.ctl("put", "--lease", granted, KEY(lease.key), '{"PublicIP":"192.0.2.1","PublicIPv6":null}');
    await until(async () => (await etcd.get(KEY(lease.key)))?.value.includes("NodeID"), {
      message: "not set right",
    });
    expect(BigInt((await etcd.get(KEY(lease.key)))?.lease ?? 0)).toBe(BigInt(`0x${granted}`));
    await until(() => node.state?.state === "held" && (node.state.secondsLeft ?? 0) > 30, {
      message: () => JSON.stringify(node.state),
    });
  });

  test("the etcd lease is revoked, or the key put without one: taken back, or become a reservation", async () => {
    await using etcd = await EtcdServer.start();
    await using node = await TestNode.open(1, etcd.endpoint, SHORT);
    const { lease } = await node.join();
    await node.untilState("held");
    const before = await etcd.get(KEY(lease.key));
    await etcd.ctl("lease", "revoke", BigInt(before?.lease ?? 0).toString(16));
    const after = await until(() => etcd.get(KEY(lease.key)), { message: "not back" });
    expect(after.lease).not.toBe(before?.lease ?? "");
    await node.untilState("held");
    await etcd.ctl("put", KEY(lease.key), after.value);
    await until(() => node.state?.state === "held" && node.state.secondsLeft === undefined, {
      message: () => JSON.stringify(node.state),
    });
    expect((await etcd.get(KEY(lease.key)))?.lease).toBe("0");
  });

  test("attributes: rewritten by comparison, under the same etcd lease; unchanged ones are not written", async () => {
    await using etcd = await EtcdServer.start();
    await using node = await TestNode.open(1, etcd.endpoint);
    const { lease } = await node.join();
    const before = await etcd.get(KEY(lease.key));
    await node.store.updateAttrs(attrsOf(1), node.signal);
    expect(await etcd.get(KEY(lease.key))).toEqual(before);
    await node.store.updateAttrs(attrsOf(1, { publicIP: "198.51.100.7" }), node.signal);
    const after = await etcd.get(KEY(lease.key));
    expect(after?.value).toContain("198.51.100.7");
    expect(after?.lease).toBe(before?.lease ?? "");
    await until(() => node.peers.get(lease.key)?.attrs.publicIP === "198.51.100.7", {
      message: "not in the watch",
    });
    expect(node.state?.state).toBe("held");
  });

  test("release deletes the key and the etcd lease; a stop without it leaves both", async () => {
    await using etcd = await EtcdServer.start();
    await using stays = await TestNode.open(1, etcd.endpoint, { ttlMs: 60_000, marginMs: 20_000 });
    await using goes = await TestNode.open(2, etcd.endpoint, { ttlMs: 60_000, marginMs: 20_000 });
    const left = await stays.join();
    await goes.join();
    await goes.store.release();
    await Promise.all([stays.stop(), goes.stop()]);
    expect(await etcd.keys(KEY(""))).toEqual([KEY(left.lease.key)]);
    expect((await etcd.ctl("lease", "list")).split("\n").length - 1).toBe(1);
  });
});
