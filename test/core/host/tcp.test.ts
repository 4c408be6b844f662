import { expect, test } from "bun:test";
import { join } from "node:path";
import { tryTcp } from "../../../core/host/tcp.ts";
import { Namespace } from "../../lab/namespace.ts";
import { freePorts } from "../../lab/ports.ts";

const MODULE = join(import.meta.dir, "../../../core/host/tcp.ts");

test.each(["127.0.0.1", "::1"])("accepted and refused at %s", async (hostname) => {
  const server = Bun.listen({ hostname, port: 0, socket: { data() {} } });
  expect(await tryTcp(hostname, server.port, 2_000)).toEqual({ outcome: "accepted" });
  server.stop(true);
  const [port = 0] = await freePorts(1);
  expect(await tryTcp(hostname, port, 2_000)).toEqual({ outcome: "refused" });
});

test.each([{}, { BUN_JSC_useJIT: "0" }])("dropped on the way, and no way at all (%j)", async (env) => {
  await using ns = await Namespace.create("tcp");
  const chain = "nft add table ip t; nft add chain ip t i '{ type filter hook input priority 0; }'";
  const drop =
    "nft add rule ip t i tcp dport 9 drop; nft add rule ip t i tcp dport 10 reject with icmp host-prohibited";
  await ns.exec("sh", "-ec", `${chain}; ${drop}`);
  const code = `const { tryTcp } = await import(${JSON.stringify(MODULE)});
    const outcomes = [];
    for (const [address, port, ms] of [["127.0.0.1", 9, 100], ["127.0.0.1", 10, 1000], ["192.0.2.1", 9, 1000]])
      outcomes.push(await tryTcp(address, port, ms));
    console.log(JSON.stringify(outcomes)); process.exit();`;
  const set = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const outcomes: { outcome: string }[] = JSON.parse(
    await ns.exec("env", ...set, process.execPath, "-e", code),
  );
  const coarse = set.length > 0;
  expect(outcomes.map(({ outcome }) => outcome)).toEqual(
    coarse ? ["timeout", "refused", "refused"] : ["timeout", "unreachable", "unreachable"],
  );
});

test("what is no address", async () => {
  expect(await tryTcp("x", 1, 100)).toMatchObject({ outcome: "unreachable" });
});
