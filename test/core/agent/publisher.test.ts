import { expect, test } from "bun:test";
import { Publisher } from "../../../core/agent/publisher.ts";
import type { LeaseAttrs } from "../../../core/lease/lease.ts";
import type { LeaseStore } from "../../../core/lease/store.ts";
import { Fault } from "../../../core/observe/fault.ts";
import { Health } from "../../../core/observe/health.ts";
import { until } from "../../lab/until.ts";
import { RecordingLog } from "../observe/recording-log.ts";

const attrs = (mac: string): LeaseAttrs => ({ backendType: "vxlan", backendData: { VtepMAC: mac } });

function setUp(update: (attrs: LeaseAttrs) => Promise<void>) {
  const log = new RecordingLog();
  const health = new Health(log);
  const controller = new AbortController();
  const written: LeaseAttrs[] = [];
  const store: Pick<LeaseStore, "updateAttrs"> = {
    async updateAttrs(wanted) {
      await update(wanted);
      written.push(wanted);
    },
  };
  return {
    log,
    health,
    written,
    controller,
    publisher: new Publisher(store as LeaseStore, health, controller.signal),
  };
}

test("writes what the lease should say, once", async () => {
  const { publisher, written, log } = setUp(async () => {});
  publisher.publish(attrs("a"));
  await until(() => written.length === 1, { message: "the write" });
  publisher.publish(attrs("b"));
  await until(() => written.length === 2, { message: "the second write" });
  expect(written).toEqual([attrs("a"), attrs("b")]);
  expect(log.lines).toEqual([]);
});

test("of what comes while a write is under way only the newest is written", async () => {
  const first = Promise.withResolvers<void>();
  let writes = 0;
  const { publisher, written } = setUp(() => (writes++ === 0 ? first.promise : Promise.resolve()));
  for (const mac of ["a", "b", "c", "d"]) publisher.publish(attrs(mac));
  first.resolve();
  await until(() => written.length === 2, { message: "two writes" });
  expect(written).toEqual([attrs("a"), attrs("d")]);
});

test("a failure is a finding with the store's words, tried again, and over with the success", async () => {
  let failures = 2;
  const { publisher, written, health, log } = setUp(async () => {
    if (failures-- > 0)
      throw new Fault("LEASE_CONFLICT", "another node wrote the key", { hint: "Look at it." });
  });
  publisher.publish(attrs("a"));
  await until(() => health.has("LEASE_OUTDATED"), { message: "the finding" });
  expect(health.list()[0]).toMatchObject({ text: "another node wrote the key", fix: "Look at it." });
  await until(() => written.length === 1, { message: "the write" });
  await until(() => health.list().length === 0, { message: "no finding" });
  expect(log.messages("error")).toHaveLength(1);
});

test("stops trying when the daemon stops", async () => {
  let tries = 0;
  const { publisher, health, controller } = setUp(async () => {
    tries++;
    throw new Error("down");
  });
  publisher.publish(attrs("a"));
  await until(() => health.has("LEASE_OUTDATED"), { message: "the finding" });
  controller.abort();
  await Bun.sleep(700);
  expect(tries).toBe(1);
});

test("a write that is cut off by the end of its session leaves no finding behind", async () => {
  const { publisher, health, controller } = setUp(async () => {
    if (!health.has("LEASE_OUTDATED")) throw new Fault("LEASE_CONFLICT", "another node wrote the key");
    controller.abort();
    throw new Fault("ETCD_ABORTED", "the call was ended");
  });
  publisher.publish(attrs("a"));
  await until(() => health.has("LEASE_OUTDATED"), { message: "the finding" });
  await until(() => controller.signal.aborted && !health.has("LEASE_OUTDATED"), { message: "its end" });
  expect(health.list()).toEqual([]);
});
