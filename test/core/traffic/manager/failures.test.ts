import { describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Ran } from "../../../../core/host/exec.ts";
import { Fault } from "../../../../core/observe/fault.ts";
import type { TrafficHost } from "../../../../core/traffic/host.ts";
import { until } from "../../../lab/until.ts";
import { NFT, start } from "./daemon.ts";

setDefaultTimeout(60_000);

/** A host whose `nft` is a function; everything it is fed is kept. */
function fakeHost(nft: (args: readonly string[], input: string) => string) {
  const inputs: string[] = [];
  const host: TrafficHost = {
    has: (command) => command === "nft",
    legacyTables: () => [],
    // Nobody changes anything: that a look is due must come from what was not done yet.
    generation: { read: () => 1, close() {} },
    run: async (_, args, { input = "" } = {}): Promise<Ran> => {
      if (input) inputs.push(input);
      return { stdout: nft(args, input), stderr: "" };
    },
  };
  return { host, inputs };
}

/** What core/host/exec throws for a tool that says `stderr`. */
function refuse(stderr: string): never {
  throw new Fault("EXEC_FAILED", `"nft" ended with 1: ${stderr}`, { cause: { stderr } });
}

describe("what goes wrong", () => {
  const { ipv6: _, ...NFT_4 } = NFT;

  test("rules that others change each time are a contest, set ever more slowly", async () => {
    const { host, inputs } = fakeHost(() => "{}");
    await using daemon = start(host);
    await daemon.manager.apply(NFT_4);
    daemon.run();
    await until(() => daemon.codes().length > 0, { message: "contest" });
    expect(daemon.codes()).toEqual(["warning TRAFFIC_CONTESTED"]);
    expect(inputs).toHaveLength(4);
    expect(daemon.lines.filter((line) => line.startsWith("traffic rules, IPv4"))).toHaveLength(3);
  });

  test("a host without random ports gets plain ones, without asking again", async () => {
    const { host, inputs } = fakeHost((args, input) => {
      if (args.includes("list")) return refuse("Error: No such file or directory");
      return input.includes("fully-random") ? refuse("add rule ... masquerade fully-random\n^^^") : "";
    });
    await using daemon = start(host);
    await daemon.manager.apply(NFT_4);
    await daemon.manager.apply(NFT_4);
    expect(daemon.codes()).toEqual([]);
    expect(inputs.map((input) => input.includes("fully-random"))).toEqual([true, false, false]);
  });

  test("a refusal is an error with the tool's own words, until it is over", async () => {
    let reason = "Error: Could not process rule: Operation not permitted";
    const { host } = fakeHost((args) => {
      if (args.includes("list")) return refuse("Error: No such file or directory");
      return reason ? refuse(reason) : "";
    });
    await using daemon = start(host);
    await daemon.manager.apply(NFT_4);
    expect(daemon.codes()).toEqual(["error TRAFFIC_FAILED"]);
    expect(daemon.health.list()[0]?.text).toContain(reason);
    daemon.run();
    reason = "";
    await until(() => daemon.codes().length === 0, { message: "over" });
  });

  test("a tool that hangs, or is no tool, is an error, too, and `cleanup` tells it", async () => {
    for (const error of [new Fault("EXEC_TIMEOUT", "nft hung"), new Error("odd")]) {
      const { host } = fakeHost(() => {
        throw error;
      });
      await using daemon = start(host);
      await daemon.manager.apply(NFT_4);
      expect(daemon.codes()).toEqual(["error TRAFFIC_FAILED"]);
      await expect(daemon.manager.cleanup({ dryRun: true })).rejects.toMatchObject({
        code: "TRAFFIC_CLEANUP",
        message: `nftables: ${error.message}`,
      });
    }
  });

  test("a network that is none is an error, not a crash", async () => {
    const { host, inputs } = fakeHost(() => "");
    await using daemon = start(host);
    await daemon.manager.apply({ ...NFT_4, ipv4: { network: "x", subnet: "y", masqExclude: [] } });
    expect(daemon.codes()).toEqual(["error TRAFFIC_FAILED"]);
    expect(inputs).toEqual([]);
  });
});
