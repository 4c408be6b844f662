/** Whoever keeps a lease is heard of all the time: silence means that it hangs. */
import { expect, test } from "bun:test";
import { EtcdServer } from "../../../lab/etcd.ts";
import { until } from "../../../lab/until.ts";
import { TEST_TIMEOUT_MS, TestNode } from "./node.ts";

test(
  "the state is told with each look, also while etcd is away and the lease has time enough",
  async () => {
    await using etcd = await EtcdServer.start();
    await using node = await TestNode.open(1, etcd.endpoint, { ttlMs: 12_000, marginMs: 1_000 });
    node.keep(await node.acquire());
    await node.untilState("held");
    await etcd.stop();
    const told = node.states.length;
    // Looked at every 3 s, and again soon when that fails; a renewal is due after 11 s only.
    await until(() => node.states.length > told + 1, { message: () => `nothing told\n${node.log.text}` });
    expect(node.state).toMatchObject({ state: "held", secondsLeft: expect.any(Number) });
    expect(node.health.list()).toEqual([]);
  },
  TEST_TIMEOUT_MS,
);
