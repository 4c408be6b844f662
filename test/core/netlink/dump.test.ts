import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { BATCH_BYTES } from "../../../core/netlink/batch.ts";
import { Exchange } from "../../../core/netlink/exchange.ts";
import { decodeNexthop, encodeNexthop, encodeNexthopDump } from "../../../core/netlink/families/nexthop.ts";
import type { NexthopObject } from "../../../core/netlink/objects.ts";
import { Fault } from "../../../core/observe/fault.ts";
import { inNamespace, kernelIn } from "../../lab/in-namespace.ts";
import { Namespace } from "../../lab/namespace.ts";
import { FLANNEL, put } from "./host.ts";

setDefaultTimeout(30_000);

const COUNT = 3000;
const names = { nameOf: () => FLANNEL.name };
const nexthop = (id: number): NexthopObject => ({
  kind: "nexthop",
  id,
  dev: FLANNEL.name,
  via: `10.${id >> 8}.${id & 255}.0`,
  onlink: true,
});

/** A namespace with {@link COUNT} nexthops, an exchange to dump them over and one to change them over. */
async function openTable() {
  const ns = await Namespace.create("dump");
  const kernel = kernelIn(ns);
  await kernel.createLink({ ...FLANNEL, vxlan: { vni: 1, port: 8472 } });
  await kernel.setLink(FLANNEL.name, { up: true });
  const index = (await kernel.link(FLANNEL.name))?.index ?? 0;
  const objects = Array.from({ length: COUNT }, (_, n) => nexthop(n + 256));
  expect(await kernel.apply(put(...objects))).toEqual([]);
  const open = () => inNamespace(ns, () => new Exchange({ batchBytes: BATCH_BYTES, receiveBuffer: 1 << 20 }));
  const [dumps, changes] = [open(), open()];
  let next = COUNT + 256;
  return {
    dumps,
    /** One more nexthop, made at once. */
    change() {
      const object = nexthop(next++);
      const { refusal } = changes.request((builder, sequence) =>
        encodeNexthop(builder, sequence, "put", object, index),
      );
      expect(refusal).toBeUndefined();
    },
    async [Symbol.asyncDispose]() {
      for (const each of [kernel, dumps, changes]) each.close();
      await ns[Symbol.asyncDispose]();
    },
  };
}

describe("a dump", () => {
  test("is repeated when the table changed under it", async () => {
    await using table = await openTable();
    let seen = 0;
    const { items, refusal } = await table.dumps.dump(encodeNexthopDump, (message) => {
      seen++;
      if (seen === 10) table.change();
      return decodeNexthop(message, names);
    });
    expect(refusal).toBeUndefined();
    expect(seen).toBeGreaterThan(items.length);
    expect(items).toHaveLength(COUNT + 1);
    expect(new Set(items.map(({ id }) => id)).size).toBe(COUNT + 1);
  });

  test("of a table that never holds still is given up, and the socket still works", async () => {
    await using table = await openTable();
    let seen = 0;
    const restless = table.dumps.dump(encodeNexthopDump, () => {
      seen++;
      if (seen % 1000 === 10) table.change();
      return seen;
    });
    await expect(restless).rejects.toMatchObject({ code: "NETLINK_DUMP_INTERRUPTED" });
    const { items } = await table.dumps.dump(encodeNexthopDump, (message) => decodeNexthop(message, names));
    expect(items.length).toBeGreaterThan(COUNT);
  });

  test("is read to its end after a malformed message, and the socket still works", async () => {
    await using table = await openTable();
    let seen = 0;
    const broken = table.dumps.dump(encodeNexthopDump, () => {
      seen++;
      if (seen === 10) throw new Fault("NETLINK_MALFORMED", "no such thing");
      return seen;
    });
    await expect(broken).rejects.toMatchObject({ code: "NETLINK_MALFORMED" });
    const { items } = await table.dumps.dump(encodeNexthopDump, (message) => decodeNexthop(message, names));
    expect(items).toHaveLength(COUNT);
  });
});
