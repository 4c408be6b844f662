import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { Namespace } from "../../lab/namespace.ts";

setDefaultTimeout(30_000);

const root = new URL("../../../", import.meta.url).pathname;

/** Runs a script in a namespace with the project's modules at hand; what it printed as JSON, line by line. */
async function runScript(ns: Namespace, script: string, prefix: readonly string[] = []): Promise<unknown[]> {
  const source = `
    const { openKernel } = await import("${root}core/netlink/open.ts");
    const { Fault } = await import("${root}core/observe/fault.ts");
    const print = (value) => console.log(JSON.stringify(value));
    const log = { debug() {}, info() {}, warn: (message, fields) => print({ warn: message, ...fields }), error() {} };
    const run = async (file, args, options = {}) => {
      const child = Bun.spawn([file, ...args], { stdin: new Blob([options.input ?? ""]), stderr: "pipe" });
      const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
      if ((await child.exited) !== 0) throw Object.assign(new Error("failed"), { stderr });
      return { stdout, stderr };
    };
    try { ${script} } catch (error) { print({ code: error.code, hint: error.hint, fault: error instanceof Fault }); }
    process.exit(0);`;
  const output = await ns.exec(...prefix, process.execPath, "--no-install", "-e", source);
  return output
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

const DUMP = `const kernel = await openKernel(log, run);
  print({ kernel: kernel.constructor.name, links: (await kernel.links()).map((link) => link.name) });`;

describe("opening the kernel", () => {
  test("speaks rtnetlink, without a word", async () => {
    await using ns = await Namespace.create("open");
    expect(await runScript(ns, DUMP)).toEqual([{ kernel: "RtnetlinkKernel", links: ["lo"] }]);
  });

  test("goes through `ip` where the JIT is off, and says so once", async () => {
    await using ns = await Namespace.create("nojit");
    const printed = await runScript(ns, DUMP, ["env", "BUN_JSC_useJIT=0"]);
    expect(printed).toEqual([
      expect.objectContaining({
        warn: expect.stringContaining("`ip`"),
        reason: expect.stringContaining("JIT"),
      }),
      { kernel: "CommandKernel", links: ["lo"] },
    ]);
  });

  test("without the JIT and without a runner names the reason", async () => {
    await using ns = await Namespace.create("norun");
    const [printed] = await runScript(ns, "await openKernel(log);", ["env", "BUN_JSC_useJIT=0"]);
    expect(printed).toMatchObject({
      code: "FFI_UNAVAILABLE",
      fault: true,
      hint: expect.stringContaining("JIT"),
    });
  });

  test.each([
    ["rtnetlink", "1"],
    ["ip", "0"],
  ])("without CAP_NET_ADMIN reads, but says which right is missing to write (%s)", async (_, jit) => {
    await using ns = await Namespace.create("nocap");
    const script = `const kernel = await openKernel({ ...log, warn() {} }, run);
      print((await kernel.links()).map((link) => link.name));
      const fails = async (work) => { try { await work(); print("done"); } catch ({ code, hint }) { print({ code, hint }); } };
      const object = { kind: "address", dev: "lo", address: "10.5.0.0/32" };
      await fails(() => kernel.apply([{ action: "put", object }]));
      await fails(() => kernel.setLink("lo", { mtu: 1400 }));
      await fails(() => kernel.createLink({ name: "f", type: "vxlan", mtu: 1400, mac: "02:00:00:00:00:01", vxlan: { vni: 1 } }));
      await fails(() => kernel.deleteLink("lo"));`;
    const prefix = [
      "env",
      `BUN_JSC_useJIT=${jit}`,
      "setpriv",
      "--bounding-set=-net_admin",
      "--inh-caps=-net_admin",
    ];
    const [links, ...refusals] = await runScript(ns, script, prefix);
    expect(links).toEqual(["lo"]);
    expect(refusals).toHaveLength(4);
    for (const refusal of refusals) {
      expect(refusal).toMatchObject({
        code: "NETLINK_PERMISSION",
        hint: expect.stringContaining("CAP_NET_ADMIN"),
      });
    }
  });
});
