import { expect, setDefaultTimeout, test } from "bun:test";
import { Layout } from "../../../../core/lease/etcd/layout.ts";
import { EtcdServer } from "../../../lab/etcd.ts";
import { RpcProxy } from "../../../lab/rpc-proxy.ts";
import { until } from "../../../lab/until.ts";
import { PREFIX, TEST_TIMEOUT_MS, TestNode } from "./node.ts";
import { refusalOf } from "./probe.ts";

setDefaultTimeout(TEST_TIMEOUT_MS);

const CONFIG = '{"Network":"10.5.0.0/16"}';

test("a missing config is a finding with the command to write it, and is read as soon as it is there", async () => {
  await using etcd = await EtcdServer.start();
  await using node = await TestNode.open(1, etcd.endpoint);
  const reading = node.store.readConfig(node.signal);
  await until(() => node.health.has("CONFIG_MISSING"), { message: "no finding" });
  const [finding] = node.health.list();
  expect(finding?.fix).toContain(`etcdctl put ${PREFIX}/config`);
  expect(finding?.fix).toContain("v2");
  await until(() => node.store.stats.requests.watch === 1, { message: "not watched" });
  await etcd.ctl("put", `${PREFIX}/config`, CONFIG);
  const start = performance.now();
  expect(await reading).toEqual({ text: CONFIG, source: `etcd key ${PREFIX}/config`, revision: 2 });
  expect(performance.now() - start).toBeLessThan(500);
  expect(node.health.list()).toEqual([]);
  expect(node.store.stats.requests).toEqual({ range: 2, watch: 1 });
});

test("without a watch the config is read from time to time", async () => {
  await using etcd = await EtcdServer.start();
  await using proxy = await RpcProxy.start(etcd.clientPort);
  proxy.refuse = (call) => call.endsWith("/Watch");
  await using node = await TestNode.open(1, proxy.endpoint);
  const reading = node.store.readConfig(node.signal);
  await until(() => node.health.has("CONFIG_MISSING"), { message: "no finding" });
  await etcd.ctl("put", `${PREFIX}/config`, CONFIG);
  expect((await reading).text).toBe(CONFIG);
});

test("etcd starts late, and stopping does not wait for it", async () => {
  await using etcd = await EtcdServer.start();
  await etcd.ctl("put", `${PREFIX}/config`, CONFIG);
  await etcd.stop();
  await using late = await TestNode.open(1, etcd.endpoint);
  await using stopped = await TestNode.open(2, etcd.endpoint);
  const reading = late.store.readConfig(late.signal);
  const abort = new AbortController();
  const aborted = stopped.store.readConfig(abort.signal);
  await until(() => late.health.has("ETCD_UNREACHABLE") && stopped.health.has("ETCD_UNREACHABLE"), {
    message: "no finding",
  });
  abort.abort();
  expect(await refusalOf(aborted)).toMatchObject({ code: "CONFIG_ABORTED" });
  await etcd.restart();
  expect((await reading).text).toBe(CONFIG);
  expect(late.health.list()).toEqual([]);
});

test.each([
  ["/coreos.com/network", "/coreos.com/network/"],
  ["/coreos.com/network/", "/coreos.com/network/"],
  ["//coreos.com//network//", "/coreos.com/network/"],
  // etcd v3 tells these apart, and so does upstream.
  ["coreos.com/network", "coreos.com/network/"],
  ["/", "/"],
  ["", ""],
])("prefix %p", (prefix, root) => {
  const layout = new Layout(prefix);
  expect(layout.config).toBe(`${root}config`);
  expect(layout.subnets).toBe(`${root}subnets/`);
  expect(layout.keyOf("10.5.1.0-24").toString()).toBe(`${root}subnets/10.5.1.0-24`);
  expect(layout.nameOf(layout.keyOf("10.5.1.0-24"))).toBe("10.5.1.0-24");
  for (const sibling of ["subnets", "subnets-old/x", "subnets0"]) {
    const key = Buffer.from(root + sibling);
    const inside = key.compare(layout.subnetsFrom) >= 0 && key.compare(layout.subnetsTo) < 0;
    expect(inside).toBe(false);
  }
});
