import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { openEtcd } from "../../../../core/lease/etcd/client.ts";
import { Layout } from "../../../../core/lease/etcd/layout.ts";
import { LeaseManager } from "../../../../core/lease/etcd/manage.ts";
import { silentLog } from "../../../../core/observe/log.ts";
import { EtcdServer } from "../../../lab/etcd.ts";
import { until } from "../../../lab/until.ts";
import { PREFIX, TEST_TIMEOUT_MS, TestNode } from "./node.ts";
import { refusalOf } from "./probe.ts";

setDefaultTimeout(TEST_TIMEOUT_MS);

const KEY = (key: string) => `${PREFIX}/subnets/${key}`;
const { signal } = new AbortController();

async function manage() {
  await using stack = new AsyncDisposableStack();
  const etcd = stack.use(await EtcdServer.start());
  const client = stack.adopt(openEtcd({ endpoints: [etcd.endpoint], log: silentLog }), (opened) =>
    opened.close(),
  );
  const manager = new LeaseManager(client, new Layout(PREFIX));
  const done = stack.move();
  return { etcd, manager, [Symbol.asyncDispose]: () => done.disposeAsync() };
}

const ofAddress = (publicIP: string) => ({ backendType: "", publicIP });
const ofNode = (nodeId: string) => ({ backendType: "", nodeId });

describe.concurrent("the leases as an operator manages them", () => {
  test("the inventory tells the time left of each lease, whatever hangs on it", async () => {
    await using lab = await manage();
    await using node = await TestNode.open(1, lab.etcd.endpoint, { ttlMs: 60_000, marginMs: 20_000 });
    const { lease } = await node.acquire();
    await lab.etcd.ctl("put", KEY("10.5.200.0-24"), '{"PublicIP":"192.0.2.200"}');
    await lab.etcd.ctl("put", KEY(".lock"), "x");
    const { leases, bad, times } = await lab.manager.inventory(signal);
    expect(bad.map(({ key }) => key)).toEqual([".lock"]);
    expect(leases).toHaveLength(2);
    const own = leases.find(({ key }) => key === lease.key);
    const time = times.get(own?.leaseId ?? "");
    expect(times.size).toBe(1);
    expect(time?.granted).toBe(60);
    expect(time?.left).toBeWithin(50, 61);
    expect(await lab.manager.config(signal)).toBeUndefined();
    await lab.etcd.ctl("put", `${PREFIX}/config`, "{}");
    expect(await lab.manager.config(signal)).toMatchObject({
      text: "{}",
      source: `etcd key ${PREFIX}/config`,
    });
  });

  test("a reservation is a key without etcd lease, made once, and the node it is for takes it", async () => {
    await using lab = await manage();
    const subnets = { ipv4: "10.5.7.0/24" };
    await using node = await TestNode.open(1, lab.etcd.endpoint);
    const owner = ofNode("000000000001-000000000001");
    expect(await lab.manager.reserve(subnets, owner, false, signal)).toBe("created");
    expect(await lab.manager.reserve(subnets, owner, false, signal)).toBe("existed");
    const stored = await lab.etcd.get(KEY("10.5.7.0-24"));
    expect(stored).toMatchObject({ lease: "0" });
    expect(stored?.value).toBe(
      '{"PublicIP":"0.0.0.0","PublicIPv6":null,"NodeID":"000000000001-000000000001"}',
    );
    const held = await node.join();
    expect(held).toMatchObject({ origin: "reservation", reservation: true, lease: { subnets } });
  });

  test("somebody else's subnet, or one that overlaps it, is refused also with force", async () => {
    await using lab = await manage();
    await lab.etcd.ctl("put", KEY("10.5.7.0-24"), '{"PublicIP":"192.0.2.7"}');
    await lab.etcd.ctl("put", KEY("10.5.8.0-24"), "junk");
    for (const subnets of [{ ipv4: "10.5.7.0/24" }, { ipv4: "10.5.0.0/21" }, { ipv4: "10.5.8.0/24" }]) {
      expect(
        await refusalOf(lab.manager.reserve(subnets, ofAddress("192.0.2.1"), true, signal)),
      ).toMatchObject({
        code: "LEASE_TAKEN",
      });
    }
    const dual = { ipv4: "10.5.7.0/24", ipv6: "fd00::/64" };
    expect(await refusalOf(lab.manager.reserve(dual, ofAddress("192.0.2.7"), true, signal))).toMatchObject({
      code: "LEASE_TAKEN",
    });
  });

  test("a lease becomes a reservation by force only, under a daemon that goes on undisturbed", async () => {
    await using lab = await manage();
    await using node = await TestNode.open(1, lab.etcd.endpoint);
    const { lease } = await node.join();
    const reserve = (force: boolean) =>
      lab.manager.reserve(lease.subnets, ofAddress(lease.attrs.publicIP ?? ""), force, signal);
    expect(await refusalOf(reserve(false))).toMatchObject({ code: "LEASE_HELD" });
    const before = await lab.etcd.get(KEY(lease.key));
    expect(await reserve(true)).toBe("converted");
    const after = await lab.etcd.get(KEY(lease.key));
    expect(after).toMatchObject({ lease: "0", value: before?.value });
    await until(() => node.log.text.includes("has become a reservation"), { message: () => node.log.text });
    expect(node.states.every(({ state }) => state === "held")).toBe(true);
  });

  test("twenty operators at once reserve each subnet for one node only", async () => {
    await using lab = await manage();
    const outcomes = await Promise.allSettled(
      Array.from({ length: 20 }, (_, n) =>
        lab.manager.reserve({ ipv4: `10.5.${n % 4}.0/24` }, ofAddress(`192.0.2.${n}`), false, signal),
      ),
    );
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(4);
    expect(await lab.etcd.keys(`${PREFIX}/subnets/`)).toHaveLength(4);
  });

  test("the right to write is known without writing", async () => {
    await using lab = await manage();
    await lab.manager.rehearseWrite(signal);
    expect(await lab.etcd.keys(PREFIX)).toEqual([]);
    await lab.etcd.enableAuth("reader", "secret", "/elsewhere/");
    await lab.etcd.ctl("role", "grant-permission", "flannel", "--prefix=true", "read", PREFIX);
    const login = { username: "reader", password: "secret" };
    const client = openEtcd({ endpoints: [lab.etcd.endpoint], log: silentLog, login });
    const reader = new LeaseManager(client, new Layout(PREFIX));
    expect((await reader.list(signal)).leases).toEqual([]);
    expect(await refusalOf(reader.rehearseWrite(signal))).toMatchObject({ code: "ETCD_PERMISSION" });
    client.close();
  });

  test("an entry is deleted only as it was read", async () => {
    await using lab = await manage();
    await lab.etcd.ctl("put", KEY("10.5.7.0-24"), '{"PublicIP":"192.0.2.7"}');
    const [found] = (await lab.manager.list(signal)).leases;
    if (!found) throw new Error("no lease");
    await lab.etcd.ctl("put", KEY("10.5.7.0-24"), '{"PublicIP":"192.0.2.8"}');
    expect(await lab.manager.remove(found, signal)).toBe(false);
    const [again] = (await lab.manager.list(signal)).leases;
    expect(again && (await lab.manager.remove(again, signal))).toBe(true);
    expect(await lab.etcd.keys(`${PREFIX}/subnets/`)).toEqual([]);
  });
});
