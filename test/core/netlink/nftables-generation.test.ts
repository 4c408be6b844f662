import { expect, setDefaultTimeout, test } from "bun:test";
import { openNftablesGeneration } from "../../../core/netlink/nftables-generation.ts";
import { inNamespace } from "../../lab/in-namespace.ts";
import { Namespace } from "../../lab/namespace.ts";

setDefaultTimeout(30_000);

test("the generation moves with every change by any tool, and only then", async () => {
  await using ns = await Namespace.create("gen");
  await using other = await Namespace.create("gen2");
  const generation = inNamespace(ns, openNftablesGeneration);
  if (!generation) throw new Error("netlink cannot be spoken here");
  let last = generation.read();
  expect(last).toBeGreaterThanOrEqual(0);
  const moved = () => {
    const now = generation.read();
    const differs = now !== last;
    last = now;
    return differs;
  };
  const table = "add table ip t; add chain ip t c; add rule ip t c accept";
  await other.exec("nft", table);
  expect(moved()).toBe(false);
  await ns.exec("nft", table);
  expect(moved()).toBe(true);
  await ns.exec("nft", "-j", "list", "ruleset");
  await ns.exec("iptables-nft-save");
  expect(moved()).toBe(false);
  await ns.exec("iptables-nft", "-A", "FORWARD", "-j", "ACCEPT");
  expect(moved()).toBe(true);
  await ns.exec("nft", "flush", "ruleset");
  expect(moved()).toBe(true);
  generation.close();
  generation.close();
  expect(generation.read()).toBeUndefined();
});
