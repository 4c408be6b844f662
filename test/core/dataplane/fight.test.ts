import { expect, test } from "bun:test";
import { Fault } from "../../../core/observe/fault.ts";
import { until } from "../../lab/until.ts";
import { Node, peer4Of, vxlanBackend } from "./node.ts";
import { untilDataPath, vxlanOwnLines, vxlanPeerLines } from "./oracle.ts";

const RIGHT = [vxlanOwnLines()[0]!, ...vxlanPeerLines(2).slice(0, 3)];
const backend = () => vxlanBackend({}, { ipv4: true, ipv6: false });

test("a process that undoes each repair: a bounded number of repairs and lines, one finding, and peace after it", async () => {
  await using node = await Node.create("fight");
  await using drive = await node.drive(backend());
  await drive.run(peer4Of(2));
  await untilDataPath(node.ns, RIGHT);
  drive.resetWrites();
  const lines = drive.log.lines.length;
  // Deletes the route each time it sees it written, like a zealous network manager.
  const enemy = node.ns.spawn(
    "sh",
    "-c",
    "while :; do ip route delete 10.5.2.0/24 2>/dev/null; sleep 0.05; done",
  );
  await until(() => drive.health.has("DATAPLANE_FIGHT"), { message: "the finding", deadline: 15_000 });
  const atFinding = drive.writes.changes;
  expect(atFinding).toBeWithin(20, 24);
  const begun = performance.now();
  await until(() => drive.writes.changes >= atFinding + 2, { message: "two more repairs", deadline: 15_000 });
  expect(performance.now() - begun).toBeGreaterThan(3_000);
  enemy.kill();
  await enemy.exited;
  await untilDataPath(node.ns, RIGHT, 6_000);
  expect(drive.log.lines.length - lines).toBeLessThan(26);
}, 60_000);

test("lost notices lead to a full comparison and a new subscription, in one line", async () => {
  await using node = await Node.create("overrun");
  const { kernel, ns } = node;
  const subscribe = kernel.notices.bind(kernel);
  let lose: (() => void) | undefined;
  let subscriptions = 0;
  kernel.notices = (signal) => {
    subscriptions++;
    const lost = Promise.withResolvers<never>();
    lose = () => lost.reject(new Fault("NETLINK_OVERRUN", "netlink notices were lost"));
    lost.promise.catch(() => {});
    return (async function* () {
      const inner = subscribe(signal)[Symbol.asyncIterator]();
      for (;;) {
        const next = await Promise.race([inner.next(), lost.promise]);
        if (next.done) return;
        yield next.value;
      }
    })();
  };
  await using drive = await node.drive(backend());
  await drive.run(peer4Of(2));
  await untilDataPath(ns, RIGHT);
  for (const round of [1, 2]) {
    await until(() => subscriptions === round, { message: `subscription ${round}` });
    // What is done now is told to nobody.
    kernel.notices = (
      (deaf) => (signal) =>
        deaf(signal)
    )(kernel.notices);
    lose?.();
    await ns.ip("route delete 10.5.2.0/24");
    await untilDataPath(ns, RIGHT);
  }
  expect(drive.log.messages("warn")).toEqual(
    Array.from({ length: 2 }, () => "kernel notices were lost; listening anew and comparing everything"),
  );
});

test("a subscription that ends by itself does not become a busy loop", async () => {
  await using node = await Node.create("ended");
  let subscriptions = 0;
  node.kernel.notices = () => {
    subscriptions++;
    return new ReadableStream<never>({ start: (controller) => controller.close() });
  };
  await using drive = await node.drive(backend());
  await drive.run(peer4Of(2));
  await until(() => subscriptions >= 3, { message: "three tries" });
  await Bun.sleep(300);
  expect(subscriptions).toBeLessThan(8);
  expect(drive.log.messages("warn")).toHaveLength(1);
});
