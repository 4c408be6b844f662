import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { openEtcd } from "../../../../core/lease/etcd/client.ts";
import { EtcdServer } from "../../../lab/etcd.ts";
import { TcpProxy } from "../../../lab/proxy.ts";
import { until } from "../../../lab/until.ts";
import { PREFIX, RecordingLog, TEST_TIMEOUT_MS, TestNode } from "./node.ts";
import { outcome } from "./probe.ts";

setDefaultTimeout(TEST_TIMEOUT_MS);

const PRELOAD = join(import.meta.dir, "../../../lab/etcd3-preload.ts");

describe.concurrent("members that do not answer", () => {
  test("A13: one endpoint is a black hole, one is refused, one lives: a lease within 10 s, whatever comes first", async () => {
    await using etcd = await EtcdServer.start();
    await using hole = await TcpProxy.start(etcd.clientPort);
    hole.blackhole();
    await using closed = await TcpProxy.start(etcd.clientPort);
    closed.refuse();
    // The first member is chosen at random: many nodes try every order.
    await Promise.all(
      Array.from({ length: 8 }, async (_, n) => {
        await using node = await TestNode.open(n + 1, [hole.endpoint, closed.endpoint, etcd.endpoint]);
        const start = performance.now();
        const { lease } = await node.join();
        await until(() => node.peers.has(lease.key), { message: () => node.log.text });
        expect(performance.now() - start).toBeLessThan(10_000);
        await node.store.release();
      }),
    );
  });

  test("a connection that goes dead is noticed by the watch, and the next member is used", async () => {
    await using etcd = await EtcdServer.start();
    await using proxy = await TcpProxy.start(etcd.clientPort);
    await using node = await TestNode.open(1, [proxy.endpoint], { ttlMs: 60_000, marginMs: 10_000 });
    const { lease } = await node.join();
    await node.untilKeys([lease.key]);
    proxy.blackhole();
    const start = performance.now();
    await until(() => node.health.has("ETCD_UNREACHABLE"), { message: "not noticed", deadline: 15_000 });
    // Keepalive: a ping each 6 s, 3 s for the answer; 1 s for a busy machine.
    expect(performance.now() - start).toBeLessThan(11_000);
    proxy.pass();
    await etcd.ctl("put", `${PREFIX}/subnets/10.5.240.0-24`, '{"PublicIP":"192.0.2.240"}');
    await node.untilKeys([lease.key, "10.5.240.0-24"], 8_000);
  });

  test("after a restart of etcd the watch is back at once", async () => {
    await using etcd = await EtcdServer.start();
    await using node = await TestNode.open(1, etcd.endpoint);
    const { lease } = await node.join();
    await node.untilKeys([lease.key]);
    await etcd.restart();
    const start = performance.now();
    await etcd.ctl("put", `${PREFIX}/subnets/10.5.240.0-24`, '{"PublicIP":"192.0.2.240"}');
    await node.untilKeys([lease.key, "10.5.240.0-24"]);
    expect(performance.now() - start).toBeLessThan(3_000);
  });
});

describe.concurrent("closing", () => {
  test("twice is fine; calls under way and later ones fail with ETCD_CLOSED", async () => {
    await using etcd = await EtcdServer.start();
    etcd.pause();
    const client = openEtcd({ endpoints: [etcd.endpoint], log: new RecordingLog() });
    const underWay = outcome(client);
    await until(() => client.stats.requests.range === 1, { message: "not called" });
    client.close();
    client.close();
    expect(await underWay).toMatchObject({ code: "ETCD_CLOSED" });
    expect(await outcome(client)).toMatchObject({ code: "ETCD_CLOSED" });
  });

  const programFor = (endpoint: string) => `
    import { TestNode } from "${import.meta.dir}/node.ts";
    const node = await TestNode.open(1, "${endpoint}");
    await node.join();
    await node.untilState("held");
    console.log("joined");
    for await (const line of console) {
      const start = performance.now();
      await node.stop();
      await node.store.close();
      console.log("stopped in", performance.now() - start);
      break;
    }
  `;

  test.each(["alive", "frozen", "gone"])(
    "with etcd %s: within 500 ms, and nothing keeps the process",
    async (how) => {
      await using etcd = await EtcdServer.start();
      const child = Bun.spawn([process.execPath, "--preload", PRELOAD, "-e", programFor(etcd.endpoint)], {
        stdin: "pipe",
        stdout: "pipe",
        stderr: "inherit",
        cwd: import.meta.dir,
      });
      const lines = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
      try {
        expect((await lines.read()).value).toContain("joined");
        if (how === "frozen") etcd.pause();
        if (how === "gone") await etcd.stop();
        const start = performance.now();
        child.stdin.write("stop\n");
        await child.stdin.flush();
        const answer = (await lines.read()).value ?? "";
        expect(Number(/stopped in (.*)/.exec(answer)?.[1])).toBeLessThan(500);
        child.stdin.end();
        expect(await child.exited).toBe(0);
        expect(performance.now() - start).toBeLessThan(1_000);
      } finally {
        child.kill("SIGKILL");
      }
    },
  );
});
