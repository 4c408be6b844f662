import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { CommandKernel } from "../../../core/netlink/command/kernel.ts";
import { batchLines } from "../../../core/netlink/command/lines.ts";
import { batchRefusals, refusalOf } from "../../../core/netlink/command/refusal.ts";
import type { Run } from "../../../core/netlink/command/run.ts";
import type { NeighbourObject } from "../../../core/netlink/objects.ts";
import { Fault } from "../../../core/observe/fault.ts";
import { commandKernelIn, runIn } from "../../lab/in-namespace.ts";
import { Namespace } from "../../lab/namespace.ts";
import { addFlannel, del, openHost, put } from "./host.ts";

setDefaultTimeout(30_000);

describe("what `ip` says", () => {
  test.each([
    ["RTNETLINK answers: File exists", 17],
    ["RTNETLINK answers: No such process", 3],
    ["RTNETLINK answers: Operation not permitted", 1],
    ["RTNETLINK answers: Operation not supported", 95],
    ["RTNETLINK answers: Not supported", 95],
    ["RTNETLINK answers: Address not available", 99],
    ["RTNETLINK answers: Network unreachable", 101],
    ["Error: Nexthop has invalid gateway.", 22],
    ["Error: ipv4: Address already assigned.", 17],
    ["Error: ipv6: address not found.", 99],
    ["Error: ipv4: FIB table does not exist.\nDump terminated", 3],
    ["Error: Unknown device type.", 95],
    ['Cannot find device "eth7"', 19],
    ['Device "eth7" does not exist.', 19],
    ["Cannot open netlink socket: Address family not supported by protocol", 97],
    ["something new", 22],
    ["", 22],
  ])("%p is errno %p", (stderr, errno) => {
    expect(refusalOf(stderr).errno).toBe(errno);
  });

  test("in a batch is told apart by line", () => {
    const { refusals, rest } = batchRefusals(
      'Cannot find device "x"\nCommand failed -:2\nRTNETLINK answers: File exists\nCommand failed -:7\nthe end\n',
    );
    expect([...refusals].map(([line, { errno }]) => [line, errno])).toEqual([
      [2, 19],
      [7, 17],
    ]);
    expect(rest).toBe("the end");
  });
});

describe("a batch line", () => {
  test.each(["eth0\nlink delete lo", "eth 0", "#eth0", 'e"th0', ""])(
    "is not written for the device %p",
    (dev) => {
      const object = { kind: "address", dev, address: "10.5.0.0/32" } as const;
      expect(() => batchLines({ action: "put", object })).toThrow(
        expect.objectContaining({ code: "NETLINK_BAD_OBJECT" }),
      );
    },
  );

  test("is not written for text that is no address", () => {
    const object = {
      kind: "route",
      dev: "eth0",
      dst: "10.5.0.0/24\nlink delete lo",
      via: "10.5.0.0",
    } as const;
    expect(() => batchLines({ action: "put", object })).toThrow(
      expect.objectContaining({ code: "NETLINK_BAD_OBJECT" }),
    );
  });
});

describe("the kernel through `ip` and `bridge`", () => {
  test("finds the line at which `ip` gave up", async () => {
    await using host = await openHost((ns) => commandKernelIn(ns));
    await addFlannel(host.kernel);
    const neighbour = (index: number): NeighbourObject => {
      return { kind: "neighbour", dev: "flannel.1", ip: `10.5.${index}.0`, mac: "0a:00:00:00:00:01" };
    };
    // Multicast cannot be a neighbour's address; `ip neighbour` exits there in spite of -force.
    const objects = Array.from({ length: 40 }, (_, index) => neighbour(index));
    objects[17] = { ...neighbour(17), ip: "0.0.0.0", dev: "lo" };
    objects[23] = { ...neighbour(23), ip: "224.0.0.1", dev: "lo" };
    const failures = await host.kernel.apply(put(...objects));
    for (const { index } of failures) expect([17, 23]).toContain(index);
    expect(await host.kernel.neighbours(4, "flannel.1")).toHaveLength(38);
  });

  test("deletes neighbours that are gone in one run", async () => {
    await using host = await openHost((ns) => commandKernelIn(ns));
    await addFlannel(host.kernel);
    let runs = 0;
    const inside = runIn(host.ns);
    const kernel = await CommandKernel.open((...call) => {
      runs++;
      return inside(...call);
    });
    const objects = Array.from({ length: 40 }, (_, index): NeighbourObject => {
      return { kind: "neighbour", dev: "flannel.1", ip: `10.5.${index}.0`, mac: "0a:00:00:00:00:01" };
    });
    expect(await kernel.apply(del(...objects))).toEqual([]);
    expect(runs).toBe(2);
    expect(await kernel.neighbours(4, "flannel.1")).toEqual([]);
  });

  test("names a missing right once, however many changes there are", async () => {
    let runs = 0;
    const run: Run = async (_, args) => {
      runs++;
      if (!args.includes("-batch")) return { stdout: "[]", stderr: "" };
      throw Object.assign(new Error("exit 1"), { stderr: "RTNETLINK answers: Operation not permitted\n" });
    };
    const kernel = await CommandKernel.open(run);
    const object = { kind: "neighbour", dev: "eth0", ip: "10.5.0.0", mac: "0a:00:00:00:00:01" } as const;
    const changes = put(...Array.from({ length: 500 }, () => object));
    await expect(kernel.apply(changes)).rejects.toMatchObject({ code: "NETLINK_PERMISSION" });
    expect(runs).toBe(2);
  });

  test("does without nexthop objects where `ip` or the kernel has none", async () => {
    const run: Run = async () => {
      throw Object.assign(new Error("exit 2"), { stderr: 'Object "nexthop" is unknown, try "ip help".\n' });
    };
    const kernel = await CommandKernel.open(run);
    expect(kernel.nexthopObjects).toBe(false);
    expect(await kernel.nexthops()).toEqual([]);
  });

  test("passes on what the runner itself has to say, and reads the cause of a fault", async () => {
    const missing = new Fault("EXEC_MISSING", 'command "ip" is not installed');
    await expect(
      CommandKernel.open(async () => {
        throw missing;
      }),
    ).rejects.toBe(missing);
    await using ns = await Namespace.create("cause");
    const inside = runIn(ns);
    const wrapping: Run = (file, args, options) =>
      inside(file, args, options).catch((cause) => {
        throw new Fault("EXEC_FAILED", "failed", { cause });
      });
    const kernel = await CommandKernel.open(wrapping);
    expect(await kernel.link("nosuch")).toBeUndefined();
  });

  test("says so when `ip` prints something else than JSON", async () => {
    const kernel = await CommandKernel.open(async () => ({ stdout: "[]", stderr: "" }));
    expect(await kernel.links()).toEqual([]);
    const broken = await CommandKernel.open(async (_, args) => ({
      stdout: args.includes("nexthop") ? "[]" : "1: lo: <LOOPBACK>",
      stderr: "",
    }));
    await expect(broken.links()).rejects.toMatchObject({ code: "NETLINK_MALFORMED" });
  });
});
