import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { EtcdServer } from "../../../lab/etcd.ts";
import { RpcProxy } from "../../../lab/rpc-proxy.ts";
import { until } from "../../../lab/until.ts";
import { attrsOf, PREFIX, RANGES, TEST_TIMEOUT_MS, TestNode } from "./node.ts";

setDefaultTimeout(TEST_TIMEOUT_MS);

const KEY = (key: string) => `${PREFIX}/subnets/${key}`;
const LONG = { ttlMs: 60_000, marginMs: 20_000 };

/** The first `count` calls of that name are done, but their answers are lost. */
function loseAnswers(proxy: RpcProxy, name: string, count: number): void {
  let left = count;
  proxy.lose = (call) => call.endsWith(`/${name}`) && left-- > 0;
}

async function leaseCount(etcd: EtcdServer): Promise<number> {
  return (await etcd.ctl("lease", "list")).split("\n").length - 1;
}

describe.concurrent("calls that were done although they seem to have failed", () => {
  test.each(["Txn", "LeaseGrant"])("acquire, %s: one key, one etcd lease", async (call) => {
    await using etcd = await EtcdServer.start();
    await using proxy = await RpcProxy.start(etcd.clientPort);
    loseAnswers(proxy, call, 1);
    await using node = await TestNode.open(1, proxy.endpoint, LONG);
    const { lease } = await node.acquire();
    expect(await etcd.keys(KEY(""))).toEqual([KEY(lease.key)]);
    // A grant whose answer was lost is nobody's; it runs out by itself.
    expect(await leaseCount(etcd)).toBe(call === "Txn" ? 1 : 2);
    await node.store.release();
    expect(await etcd.keys(KEY(""))).toEqual([]);
  });

  test("acquire through two members of which one loses every answer: repeated at the other, nothing twice", async () => {
    await using etcd = await EtcdServer.start();
    await using lossy = await RpcProxy.start(etcd.clientPort);
    lossy.lose = (call) => call.endsWith("/Txn") || call.endsWith("/LeaseGrant");
    const ranges = {
      ...RANGES,
      ipv6: { network: "fd00::/48", subnetLen: 64, subnetMin: "fd00:0:0:1::", subnetMax: "fd00:0:0:ff::" },
    };
    for (let n = 1; n <= 6; n += 1) {
      await using node = await TestNode.open(n, [lossy.endpoint, etcd.endpoint], LONG);
      await node.acquire(ranges, { publicIPv6: `fd99::${n}` });
      expect((await etcd.keys(KEY(""))).length).toBe(n);
      expect(await leaseCount(etcd)).toBe(n);
    }
  });

  test("attributes: found to be written, no false conflict", async () => {
    await using etcd = await EtcdServer.start();
    await using proxy = await RpcProxy.start(etcd.clientPort);
    await using node = await TestNode.open(1, [proxy.endpoint], LONG);
    const { lease } = await node.join();
    await node.untilState("held");
    loseAnswers(proxy, "Txn", 1);
    await node.store.updateAttrs(attrsOf(1, { publicIP: "198.51.100.7" }), node.signal);
    await until(() => node.peers.get(lease.key)?.attrs.publicIP === "198.51.100.7", {
      message: node.log.text,
    });
    await node.untilState("held");
    expect(node.states.map(({ state }) => state)).not.toContain("conflict");
    expect(node.state?.lease.attrs.publicIP).toBe("198.51.100.7");
  });

  test("taking the key back: found to be done", async () => {
    await using etcd = await EtcdServer.start();
    await using proxy = await RpcProxy.start(etcd.clientPort);
    await using node = await TestNode.open(1, [proxy.endpoint], LONG);
    const { lease } = await node.join();
    await node.untilState("held");
    loseAnswers(proxy, "Txn", 1);
    await etcd.ctl("del", KEY(lease.key));
    const stored = await until(() => etcd.get(KEY(lease.key)), { message: "not back" });
    await until(() => node.state?.lease.modRevision === stored.modRevision, { message: () => node.log.text });
    expect(node.state?.state).toBe("held");
    expect(await etcd.get(KEY(lease.key))).toEqual(stored);
  });
});
