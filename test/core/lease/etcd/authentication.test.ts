import { describe, expect, setDefaultTimeout, test } from "bun:test";
import type { EtcdOptions } from "../../../../core/lease/etcd/client.ts";
import { EtcdServer } from "../../../lab/etcd.ts";
import { until } from "../../../lab/until.ts";
import { PREFIX, RecordingLog, TEST_TIMEOUT_MS, TestNode } from "./node.ts";
import { open, outcome, refusalOf } from "./probe.ts";

setDefaultTimeout(TEST_TIMEOUT_MS);

const SECRET = "s3cret-passw0rd";

describe.concurrent("authentication", () => {
  test("wrong password, unknown user, no user, no permission: told apart, the password in no text", async () => {
    await using etcd = await EtcdServer.start();
    await etcd.enableAuth("flannel", SECRET, `${PREFIX}/`);
    const cases: [EtcdOptions["login"], string][] = [
      [{ username: "flannel", password: SECRET }, "ok"],
      [{ username: "flannel", password: `${SECRET}x` }, "ETCD_AUTH"],
      [{ username: "nobody", password: SECRET }, "ETCD_AUTH"],
      [undefined, "ETCD_AUTH"],
    ];
    for (const [login, code] of cases) {
      using client = open({ endpoints: [etcd.endpoint], login });
      const fault = await outcome(client);
      expect(fault === "ok" ? fault : fault.code).toBe(code);
      expect(fault === "ok" ? "" : `${fault.message} ${fault.hint} ${Bun.inspect(fault)}`).not.toContain(
        SECRET,
      );
    }
    using client = open({ endpoints: [etcd.endpoint], login: { username: "flannel", password: SECRET } });
    const denied = client.call("range", { key: Buffer.from("/elsewhere") });
    expect(await refusalOf(denied)).toMatchObject({ code: "ETCD_PERMISSION" });
  });

  test("user and password given, but etcd has authentication off: works with one warning", async () => {
    await using etcd = await EtcdServer.start();
    const log = new RecordingLog();
    using client = open({
      endpoints: [etcd.endpoint],
      login: { username: "flannel", password: SECRET },
      log,
    });
    expect(await outcome(client)).toBe("ok");
    expect(await outcome(client)).toBe("ok");
    expect(log.lines.filter((line) => line.level === "warn")).toHaveLength(1);
  });

  test("A10: tokens that live 3 s for 15 s: every change arrives, few logins; etcd restarted; password changed", async () => {
    await using etcd = await EtcdServer.start({ args: ["--auth-token", "simple", "--auth-token-ttl", "3"] });
    await etcd.enableAuth("flannel", SECRET, `${PREFIX}/`);
    await using node = await TestNode.open(1, etcd.endpoint, {
      login: { username: "flannel", password: SECRET },
      ttlMs: 20_000,
      marginMs: 15_000,
    });
    const { lease } = await node.join();
    const keys = [lease.key];
    const start = performance.now();
    for (let n = 0; n < 4; n += 1) {
      // The pace of the changes is what is under test: longer than a token lives.
      await Bun.sleep(3_700);
      const key = `10.5.${230 + n}.0-24`;
      await etcd.ctl("put", `${PREFIX}/subnets/${key}`, `{"PublicIP":"192.0.2.${230 + n}"}`);
      keys.push(key);
      await node.untilKeys(keys, 2_000);
    }
    const seconds = (performance.now() - start) / 1000;
    expect(node.store.stats.requests.authenticate).toBeLessThanOrEqual(seconds / 3 + 2);
    expect(node.state?.state).toBe("held");

    // The restarted member has forgotten all tokens: the watch is refused and must be opened with a new one.
    await etcd.restart();
    await etcd.ctl("put", `${PREFIX}/subnets/10.5.240.0-24`, '{"PublicIP":"192.0.2.240"}');
    keys.push("10.5.240.0-24");
    await node.untilKeys(keys);

    // Another password: nothing works, which is said once, and again once it is over.
    await until(() => node.health.list().length === 0, { message: () => JSON.stringify(node.health.list()) });
    const lines = node.log.lines.length;
    await etcd.password("flannel", "another");
    await etcd.restart();
    await until(() => node.health.has("ETCD_AUTH"), { message: () => node.log.text });
    await until(() => (node.store.stats.requests.authenticate ?? 0) >= 8, {
      message: "no more tries",
      deadline: 15_000,
    });
    expect(node.log.lines.slice(lines).filter((line) => line.level !== "debug").length).toBeLessThanOrEqual(
      6,
    );
    expect(node.log.text).not.toContain(SECRET);
    await etcd.password("flannel", SECRET);
    await etcd.ctl("put", `${PREFIX}/subnets/10.5.241.0-24`, '{"PublicIP":"192.0.2.241"}');
    keys.push("10.5.241.0-24");
    await node.untilKeys(keys, 15_000);
  });
});
