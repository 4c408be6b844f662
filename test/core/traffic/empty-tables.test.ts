import { expect, test } from "bun:test";
import { isEmptyTable, removeEmptyTables } from "../../../core/traffic/nftables/empty-tables.ts";
import { runIn } from "../../lab/in-namespace.ts";
import { Namespace } from "../../lab/namespace.ts";

test("tables that only hold empty chains go; one with a rule, a policy or a chain of somebody stays", async () => {
  await using ns = await Namespace.create("tables");
  const sh = (text: string) => ns.exec("sh", "-ec", text);
  await sh("iptables-nft -A FORWARD -j ACCEPT; iptables-nft -D FORWARD -j ACCEPT");
  await sh(
    "iptables-nft -t nat -A POSTROUTING -j ACCEPT; ip6tables-nft -P FORWARD DROP; ip6tables-nft -t nat -N MINE",
  );
  await sh("nft add table ip flannel-ipv4");
  expect(await removeEmptyTables(runIn(ns))).toEqual(["empty table ip filter"]);
  const left = await sh("nft list tables");
  expect(left.trim().split("\n").toSorted()).toEqual([
    "table ip flannel-ipv4",
    "table ip nat",
    "table ip6 filter",
    "table ip6 nat",
  ]);
  expect(await removeEmptyTables(runIn(ns))).toEqual([]);
});

test("a listing", () => {
  expect(isEmptyTable('{"nftables":[{"metainfo":{}},{"table":{}}]}')).toBe(true);
  expect(isEmptyTable('{"nftables":[{"table":{}},{"chain":{"hook":"forward","policy":"accept"}}]}')).toBe(
    true,
  );
  expect(isEmptyTable('{"nftables":[{"table":{}},{"set":{}}]}')).toBe(false);
});
