import { expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { EtcdServer } from "../../../lab/etcd.ts";
import { until } from "../../../lab/until.ts";
import { attrsOf, PREFIX, TEST_TIMEOUT_MS, TestNode } from "./node.ts";

setDefaultTimeout(TEST_TIMEOUT_MS);

const KEY = (key: string) => `${PREFIX}/subnets/${key}`;
const PRELOAD = join(import.meta.dir, "../../../lab/etcd3-preload.ts");

test("A3: the wall clock jumps two hours forth and back: etcd is asked, nothing is lost, no storm", async () => {
  await using etcd = await EtcdServer.start();
  await using node = await TestNode.open(1, etcd.endpoint, { ttlMs: 4_000, marginMs: 2_000 });
  const { lease } = await node.join();
  await node.untilState("held");
  const before = await etcd.get(KEY(lease.key));
  const now = Date.now;
  const start = performance.now();
  try {
    for (const hours of [2, -2]) {
      Date.now = () => now() + hours * 3_600_000;
      const renewals = node.store.stats.renewals;
      await until(() => node.store.stats.renewals >= renewals + 2, { message: () => node.log.text });
    }
  } finally {
    Date.now = now;
  }
  const nominal = (performance.now() - start) / 2_000;
  // The jumps themselves ask once each.
  expect(node.store.stats.renewals).toBeLessThanOrEqual(nominal + 4);
  expect(await etcd.get(KEY(lease.key))).toEqual(before);
  expect(node.log.text).toContain("the clock jumped");
  expect(node.states.every(({ state }) => state === "held")).toBe(true);
});

test("A3: the daemon is frozen for longer than its lease lives: it asks first, then takes back or reports", async () => {
  await using etcd = await EtcdServer.start();
  const program = `
    import { TestNode } from "${import.meta.dir}/node.ts";
    const node = await TestNode.open(1, "${etcd.endpoint}", { ttlMs: 2_000, marginMs: 1_000 });
    const { lease } = await node.join();
    await node.untilState("held");
    console.log(lease.key);
    let told = "";
    for (;;) {
      const state = node.state?.state ?? "";
      if (state !== told) console.log(told = state);
      await Bun.sleep(20);
    }
  `;
  const child = Bun.spawn([process.execPath, "--preload", PRELOAD, "-e", program], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
    cwd: import.meta.dir,
  });
  let output = "";
  const reading = (async () => {
    for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) output += chunk;
  })();
  try {
    const key = await until(() => /^(10\.5\.\d+\.0-24)\nheld/.exec(output)?.[1], { message: () => output });
    const gone = async () => (await etcd.get(KEY(key))) === undefined;

    child.kill("SIGSTOP");
    await until(gone, { message: "the lease did not run out" });
    child.kill("SIGCONT");
    await until(async () => (await etcd.get(KEY(key)))?.value.includes("192.0.2.1"), { message: "not back" });

    child.kill("SIGSTOP");
    await until(gone, { message: "the lease did not run out" });
    const theirs = JSON.stringify({ PublicIP: "192.0.2.9", NodeID: attrsOf(9).nodeId });
    await etcd.ctl("put", KEY(key), theirs);
    child.kill("SIGCONT");
    await until(() => output.endsWith("conflict\n"), { message: () => output });
    expect((await etcd.get(KEY(key)))?.value).toBe(theirs);
  } finally {
    child.kill("SIGKILL");
    await child.exited;
    await reading;
  }
});

test("A1: a reservation costs nothing while it is kept", async () => {
  await using etcd = await EtcdServer.start();
  await etcd.ctl("put", KEY("10.5.44.0-24"), '{"PublicIP":"192.0.2.4"}');
  await using node = await TestNode.open(4, etcd.endpoint);
  await node.join();
  await node.untilState("held");
  await node.untilKeys(["10.5.44.0-24"]);
  const requests = { ...node.store.stats.requests };
  const { user, system } = process.cpuUsage();
  // The time itself is what is measured.
  await Bun.sleep(3_000);
  const used = process.cpuUsage({ user, system });
  expect((used.user + used.system) / 1000).toBeLessThan(150);
  expect(node.store.stats.requests).toEqual(requests);
});
