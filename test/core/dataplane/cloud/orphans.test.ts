import { describe, expect, test } from "bun:test";
import type { CloudReading, CloudRoute } from "flannel/sdk";
import { Orphans } from "../../../../core/dataplane/cloud/orphans.ts";
import { Retirement } from "../../../../core/dataplane/cloud/retirement.ts";
import type { Subnets } from "../../../../core/lease/lease.ts";
import { parsePrefix } from "../../../../core/net/prefix.ts";
import { silentLog } from "../../../../core/observe/log.ts";

const ranges = [{ network: parsePrefix("10.244.0.0/16")!, subnetLen: 24 }];
const GRACE = 1_000;

const node = (dst: string, rest: Partial<CloudRoute> = {}): CloudRoute => ({
  dst,
  target: "gone",
  kind: "node",
  state: "active",
  ...rest,
});
const reading = (...routes: CloudRoute[]): CloudReading => ({ tables: [{ id: "t", routes }] });

function setUp(markedOnly = false) {
  let now = 0;
  const orphans = new Orphans({ grace: GRACE, markedOnly, ranges, now: () => now });
  return {
    orphans,
    look: (ms: number, found: CloudReading, leased: readonly string[] = []) => {
      now = ms;
      return orphans.observe(found, "self", leased).map(({ dst }) => dst);
    },
  };
}

describe("a route without lease", () => {
  test("is due after the grace time, counted from the first look", () => {
    const { look, orphans } = setUp();
    const found = reading(node("10.244.9.0/24"));
    expect(look(5_000, found)).toEqual([]);
    expect(orphans.next).toBe(GRACE);
    expect(look(5_999, found)).toEqual([]);
    expect(orphans.next).toBe(1);
    expect(look(6_000, found)).toEqual(["10.244.9.0/24"]);
  });

  test("begins anew when a lease had its subnet meanwhile, or it led elsewhere", () => {
    const { look } = setUp();
    const found = reading(node("10.244.9.0/24"));
    look(0, found);
    expect(look(900, found, ["10.244.9.0/24"])).toEqual([]);
    expect(look(1_800, found)).toEqual([]);
    expect(look(2_700, reading(node("10.244.9.0/24", { target: "another" })))).toEqual([]);
    expect(look(3_600, reading(node("10.244.9.0/24", { target: "another" })))).toEqual([]);
    expect(look(3_700, reading(node("10.244.9.0/24", { target: "another" })))).toEqual(["10.244.9.0/24"]);
  });

  test("is one to another node, of the form of a lease, marked where there are marks", () => {
    const others = reading(
      node("10.244.9.0/24", { target: "self" }),
      node("10.244.10.0/24", { kind: "foreign" }),
      node("10.244.11.0/25"),
      node("10.244.0.0/16"),
      node("172.16.0.0/24"),
      node("10.244.12.0/24"),
    );
    const unmarked = setUp();
    unmarked.look(0, others, ["10.244.12.0/25"]);
    expect(unmarked.look(GRACE, others, ["10.244.12.0/25"])).toEqual([]);
    const marked = setUp(true);
    const both = reading(node("10.244.9.0/24"), node("10.244.10.0/24", { marked: true }));
    marked.look(0, both);
    expect(marked.look(GRACE, both)).toEqual(["10.244.10.0/24"]);
  });
});

describe("whether this node removes it", () => {
  const found = reading(node("10.244.9.0/24"));

  function retire(leads: boolean, taken: readonly Subnets[]) {
    const asked: string[] = [];
    const store = {
      lead: async (task: string) => {
        asked.push(task);
        return leads;
      },
      takenSubnets: async () => taken,
    };
    const retirement = new Retirement({ grace: 0, markedOnly: false, ranges, store, log: silentLog });
    return {
      asked,
      choose: (leased: readonly string[] = []) =>
        retirement.choose(found, "self", leased, new AbortController().signal),
    };
  }

  test("it does when it leads and the store agrees", async () => {
    expect(await retire(true, [{ ipv4: "10.244.8.0/24" }]).choose()).toEqual([
      { dst: "10.244.9.0/24", target: "gone" },
    ]);
  });

  test("it does not when another one leads, or the store knows of a lease that the watch has not told yet", async () => {
    expect(await retire(false, []).choose()).toEqual([]);
    expect(await retire(true, [{ ipv4: "10.244.9.0/24" }]).choose()).toEqual([]);
  });

  test("nobody is asked while nothing is due", async () => {
    const { asked, choose } = retire(true, []);
    expect(await choose(["10.244.9.0/24"])).toEqual([]);
    expect(asked).toEqual([]);
  });

  test("a store without elections never removes anything", async () => {
    const retirement = new Retirement({ grace: 0, markedOnly: false, ranges, store: {}, log: silentLog });
    expect(await retirement.choose(found, "self", [], new AbortController().signal)).toEqual([]);
  });
});
