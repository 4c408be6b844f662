import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { openEtcd } from "../../../../core/lease/etcd/client.ts";
import { Layout } from "../../../../core/lease/etcd/layout.ts";
import { Leadership } from "../../../../core/lease/etcd/leadership.ts";
import { silentLog } from "../../../../core/observe/log.ts";
import { EtcdServer } from "../../../lab/etcd.ts";
import { until } from "../../../lab/until.ts";
import { PREFIX, TEST_TIMEOUT_MS, TestNode } from "./node.ts";

setDefaultTimeout(TEST_TIMEOUT_MS);

const KEY = `${PREFIX}/leaders/task`;
const TERM_MS = 60_000;
const { signal } = new AbortController();

async function setUp() {
  await using stack = new AsyncDisposableStack();
  const etcd = stack.use(await EtcdServer.start());
  const client = stack.adopt(openEtcd({ endpoints: [etcd.endpoint], log: silentLog }), (opened) =>
    opened.close(),
  );
  const node = (holder: string) =>
    new Leadership({ client, layout: new Layout(PREFIX), task: "task", holder });
  const done = stack.move();
  return { etcd, node, [Symbol.asyncDispose]: () => done.disposeAsync() };
}

describe.concurrent("an election", () => {
  test("has one winner, however many ask at once, and names it", async () => {
    await using lab = await setUp();
    const nodes = Array.from({ length: 10 }, (_, n) => lab.node(`node-${n}`));
    const won = await Promise.all(nodes.map((node) => node.claim(TERM_MS, signal)));
    expect(won.filter(Boolean)).toHaveLength(1);
    expect((await lab.etcd.get(KEY))?.value).toBe(`node-${won.indexOf(true)}`);
  });

  test("is held by asking again, on the same key", async () => {
    await using lab = await setUp();
    const [a, b] = [lab.node("a"), lab.node("b")];
    expect(await a.claim(TERM_MS, signal)).toBe(true);
    expect(await b.claim(TERM_MS, signal)).toBe(false);
    expect(await a.claim(TERM_MS, signal)).toBe(true);
    expect((await lab.etcd.get(KEY))?.value).toBe("a");
  });

  test("passes on when the leader is gone", async () => {
    await using lab = await setUp();
    expect(await lab.node("a").claim(1_000, signal)).toBe(true);
    const b = lab.node("b");
    expect(await b.claim(TERM_MS, signal)).toBe(false);
    await until(() => b.claim(TERM_MS, signal), {
      message: "b does not lead",
      deadline: 20_000,
      interval: 100,
    });
  });

  test("is lost with the key, whoever takes it away", async () => {
    await using lab = await setUp();
    const [a, b] = [lab.node("a"), lab.node("b")];
    await a.claim(TERM_MS, signal);
    await lab.etcd.ctl("del", KEY);
    expect(await b.claim(TERM_MS, signal)).toBe(true);
    expect(await a.claim(TERM_MS, signal)).toBe(false);
    expect(await b.claim(TERM_MS, signal)).toBe(true);
  });
});

test("the store leads, and tells every subnet that a key names", async () => {
  await using etcd = await EtcdServer.start();
  await using node = await TestNode.open(1, etcd.endpoint);
  const { lease } = await node.acquire();
  await etcd.ctl("put", `${PREFIX}/subnets/10.5.200.0-24`, "no JSON");
  await etcd.ctl("put", `${PREFIX}/subnets/junk`, "{}");
  const taken = await node.store.takenSubnets(signal);
  expect(taken.map(({ ipv4 }) => ipv4).sort()).toEqual([lease.subnets.ipv4!, "10.5.200.0/24"].sort());
  expect(await node.store.lead("task", TERM_MS, signal)).toBe(true);
  expect((await etcd.get(KEY))?.value).toBe(lease.key);
});
