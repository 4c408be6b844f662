import { describe, expect, test } from "bun:test";
import { classify, faultOf, isMemberFailure } from "../../../../core/lease/etcd/failure.ts";
import { HeldDeletes } from "../../../../core/lease/etcd/held-deletes.ts";
import { Outage } from "../../../../core/lease/etcd/outage.ts";
import { Fault } from "../../../../core/observe/fault.ts";
import { Health } from "../../../../core/observe/health.ts";
import { until } from "../../../lab/until.ts";
import { RecordingLog } from "./node.ts";

/** An error as grpc-js makes it. */
function grpc(code: number, details: string): Error {
  return Object.assign(new Error(`${code} NAME: ${details}`), { code, details });
}

describe("classify", () => {
  test.each([
    [
      14,
      "No connection established. Last error: connect ECONNREFUSED 127.0.0.1:1 (2026-01-01T00:00:00Z)",
      "unreachable",
    ],
    [14, "Name resolution failed for target dns:nowhere:2379", "unreachable"],
    [14, "Connection dropped", "unreachable"],
    [14, "No connection established. Last error: Error: unable to verify the first certificate", "tls"],
    [14, "etcdserver: no leader", "busy"],
    [14, "etcdserver: request timed out", "busy"],
    [4, "Deadline exceeded after 3.0s", "timeout"],
    [1, "Cancelled on client", "cancelled"],
    [3, "etcdserver: authentication failed, invalid user ID or password", "login"],
    [3, "etcdserver: user name is empty", "token"],
    [3, "etcdserver: revision of auth store is old", "token"],
    [16, "etcdserver: invalid auth token", "token"],
    [7, "etcdserver: permission denied", "permission"],
    [5, "etcdserver: requested lease not found", "lease"],
    [8, "etcdserver: mvcc: database space exceeded", "space"],
    [8, "etcdserver: too many requests", "busy"],
    [11, "etcdserver: mvcc: required revision has been compacted", "compacted"],
    [12, "unknown service etcdserverpb.KV", "unreachable"],
    [3, "etcdserver: duplicate key given in txn request", "other"],
  ])("%d %s is %s", (code, details, kind) => {
    expect(classify(grpc(code, details)).kind).toBe(kind as never);
  });

  test("equal failures read equal: no time stamps, no addresses of sockets", () => {
    const texts = ["2026-01-01T00:00:00.001Z", "2026-01-01T00:00:07.500Z"].map(
      (at) =>
        classify(grpc(14, `No connection established. Last error: connect ECONNREFUSED 127.0.0.1:1 (${at})`))
          .reason,
    );
    expect(texts[0]).toBe(texts[1] ?? "");
  });

  test("anything thrown is classified", () => {
    for (const thrown of [undefined, null, "text", 7, {}, new Error("")]) {
      expect(classify(thrown).kind).toBe("other");
    }
  });

  test("of several failures the certificate counts, and each member is named", () => {
    const fault = faultOf([
      { url: "https://a:1", failure: classify(grpc(14, "connect ECONNREFUSED")) },
      { url: "https://b:1", failure: classify(grpc(14, "certificate has expired")) },
    ]);
    expect(fault.code).toBe("ETCD_TLS_VERIFY");
    expect(fault.message).toContain("https://a:1: connection refused");
    expect(fault.message).toContain("https://b:1: its certificate has expired");
    expect(isMemberFailure(classify(grpc(16, "etcdserver: invalid auth token")))).toBe(false);
  });
});

describe("held removals", () => {
  test("fall due unless the key came back, each at its own time", async () => {
    const due: string[] = [];
    const held = new HeldDeletes(40, (keys) => due.push(...keys));
    held.hold(["a", "b"]);
    held.release("a");
    await until(() => due.length === 1, { message: "b is not due", interval: 5 });
    held.hold(["c"]);
    held.hold(["c"]);
    await until(() => due.length === 2, { message: "c is not due", interval: 5 });
    expect(due).toEqual(["b", "c"]);
    held.hold(["d"]);
    held.clear();
    held.hold(["e"]);
    await until(() => due.length === 3, { message: "e is not due", interval: 5 });
    expect(due.at(-1)).toBe("e");
  });
});

describe("outage", () => {
  test("one line per story: raised, told apart by code, cleared", () => {
    const log = new RecordingLog();
    const outage = new Outage(new Health(log), "a loop");
    for (let n = 0; n < 5; n += 1) outage.raise(new Fault("ETCD_UNREACHABLE", `try ${n}`));
    outage.raise(new Fault("ETCD_AUTH", "wrong password"));
    outage.clear();
    outage.clear();
    expect(log.lines.map((line) => `${line.level} ${line.fields.code}`)).toEqual([
      "error ETCD_UNREACHABLE",
      "info ETCD_UNREACHABLE",
      "error ETCD_AUTH",
      "info ETCD_AUTH",
    ]);
  });
});
