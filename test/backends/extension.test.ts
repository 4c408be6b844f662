import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import fc from "fast-check";
import type { ActiveBackend, Families, Host, OwnLease, Peer } from "flannel/sdk";
import extension from "../../backends/extension/index.ts";
import { splitCommand } from "../../backends/extension/split.ts";
import { run } from "../../core/host/exec.ts";
import { TemporaryFolder } from "../core/host/temporary-folder.ts";
import { refusalOf as anyRefusalOf } from "../core/lease/etcd/probe.ts";
import { RecordingLog } from "../core/observe/recording-log.ts";
import { until } from "../lab/until.ts";
import { FACTS } from "./facts.ts";

const NOTHING = { added: [], changed: [], removed: [] };
const V4: Families = { ipv4: true, ipv6: false };
const OWN: OwnLease = { subnets: { ipv4: "10.5.1.0/24" } };

const refusalOf = async (promise: Promise<unknown>) => (await anyRefusalOf(promise)) as Error;

/** Writes a line per run: the name, the variables of a peer, the standard input. */
const note = (name: string) =>
  `read -r data; echo "${name} $SUBNET $PUBLIC_IP [$data]" >>"$OUT"; case $SUBNET in *.66.*) test ! -e "$OUT.refuse";; esac`;

const RECORDING = {
  PreStartupCommand: `echo "pre on $INTERFACE [$(cat)]" >>"$OUT"; echo careful >&2; echo "  the data "`,
  PostStartupCommand: `echo "post $NETWORK $IPV6NETWORK $SUBNET $IPV6SUBNET $PUBLIC_IP $PUBLIC_IPV6 [$(cat)]" >>"$OUT"`,
  SubnetAddCommand: note("add"),
  SubnetRemoveCommand: note("remove"),
};

function peer(n: number, change: Partial<Peer["ipv4"]> & { backendType?: string } = {}): Peer {
  const { backendType = "extension", ...half } = change;
  return {
    key: `10.5.${n}.0-24`,
    backendType,
    ipv4: { subnet: `10.5.${n}.0/24`, publicIP: `192.0.2.${n}`, data: `data ${n}`, ...half },
  };
}

/** A machine on which the commands run for real; `$OUT` is a file of the test. */
class Machine implements Disposable {
  readonly folder = new TemporaryFolder();
  readonly log = new RecordingLog();
  readonly out = this.folder.file("out");
  readonly state = this.folder.file("extension");

  /** A daemon that starts on it. */
  daemon(raw: Readonly<Record<string, unknown>>, families = V4) {
    const stop = new AbortController();
    const host: Host = {
      kernel: undefined as unknown as Host["kernel"],
      log: this.log,
      run: (file, args, options = {}) =>
        run(file, args, { ...options, env: { ...options.env, OUT: this.out } }),
      keepRunning: () => {
        throw new Error("no processes here");
      },
      statePath: (name) => this.folder.file(name),
      wake() {},
      signal: stop.signal,
    };
    const { ipv4, ipv6 } = families;
    const networks = { ...(ipv4 ? { ipv4: "10.5.0.0/16" } : {}), ...(ipv6 ? { ipv6: "fd00:5::/48" } : {}) };
    return { backend: configure(raw, families, networks), host, stop };
  }

  /** Starts a daemon, leases and all. */
  async start(raw: Readonly<Record<string, unknown>> = RECORDING, families = V4, lease = OWN) {
    const { backend, host, stop } = this.daemon(raw, families);
    const published = await backend.prepare(host, FACTS);
    const { mtu } = await backend.attach(lease, FACTS);
    const sync = (...peers: Peer[]) => backend.sync(peers, NOTHING, FACTS);
    return { backend, host, published, mtu, sync, stop };
  }

  /** What the commands wrote since the last look. */
  lines(): string[] {
    if (!existsSync(this.out)) return [];
    const text = readFileSync(this.out, "utf8");
    writeFileSync(this.out, "");
    return text.split("\n").filter((line) => line !== "");
  }

  [Symbol.dispose](): void {
    this.folder[Symbol.dispose]();
  }
}

function configure(raw: unknown, families: Families, networks: OwnLease["subnets"]): ActiveBackend {
  const result = extension.options["~standard"].validate(raw);
  if (result instanceof Promise || result.issues) throw new Error("these options are fine");
  const backend = extension.configure({ options: result.value, families, networks, nodeId: "node-1" });
  if (backend.mode !== "active") throw new Error("extension is active");
  return backend;
}

describe("the start", () => {
  test("publishes what PreStartupCommand prints, and gives PostStartupCommand this node's variables", async () => {
    using machine = new Machine();
    const { published, mtu } = await machine.start();
    expect(published).toEqual({ backendType: "extension", ipv4: "the data" });
    expect(mtu).toBe(FACTS.external.mtu);
    expect(machine.lines()).toEqual([
      "pre on ext0 []",
      "post 10.5.0.0/16 ::/0 10.5.1.0/24 ::/0 192.0.2.1 <nil> []",
    ]);
    // Standard error is talk, not data.
    expect(machine.log.messages()).toEqual(["PreStartupCommand: careful"]);
  });

  test("knows IPv6, in the data and in the variables", async () => {
    using machine = new Machine();
    const only6 = { ipv4: false, ipv6: true };
    const { published } = await machine.start(RECORDING, only6, { subnets: { ipv6: "fd00:5:1::/64" } });
    expect(published).toEqual({ backendType: "extension", ipv6: "the data" });
    expect(machine.lines().at(-1)).toBe(
      "post 0.0.0.0/0 fd00:5::/48 0.0.0.0/0 fd00:5:1::/64 0.0.0.0 fd00:db8::1 []",
    );
  });

  test("without commands publishes the type alone", async () => {
    using machine = new Machine();
    const { published, mtu, sync } = await machine.start({ MTU: 1400 });
    expect([published, mtu]).toEqual([{ backendType: "extension" }, 1400]);
    expect(await sync(peer(2))).toEqual({ failed: [], unusable: [] });
  });

  test.each(["PreStartupCommand", "PostStartupCommand"])("fails when %s fails", async (name) => {
    using machine = new Machine();
    const refusal = await refusalOf(machine.start({ [name]: "echo early; echo no such thing >&2; exit 4" }));
    expect(refusal).toMatchObject({
      code: "EXTENSION_COMMAND",
      message: `${name} ended with 4: no such thing`,
      hint: expect.stringContaining(name),
    });
    expect(machine.log.messages("warn")).toEqual([`${name} failed: early\nno such thing`]);
  });

  test("is given up at once when the daemon is stopped meanwhile", async () => {
    using machine = new Machine();
    const { backend, host, stop } = machine.daemon({ PreStartupCommand: 'sleep 0.5; echo on >>"$OUT"' });
    const begun = performance.now();
    const refused = refusalOf(backend.prepare(host, FACTS));
    stop.abort();
    expect((await refused).message).toContain("the daemon stops");
    expect(performance.now() - begun).toBeLessThan(400);
    await until(() => machine.lines().includes("on"), { message: "the command went on to its own end" });
  });
});

describe("peers", () => {
  test("are added once, changed by removing what was, and removed as they were added", async () => {
    using machine = new Machine();
    const { sync } = await machine.start();
    machine.lines();
    await sync(peer(2), peer(3));
    expect(machine.lines()).toEqual([
      "add 10.5.2.0/24 192.0.2.2 [data 2]",
      "add 10.5.3.0/24 192.0.2.3 [data 3]",
    ]);
    await sync(peer(2), peer(3));
    expect(machine.lines()).toEqual([]);
    await sync(peer(2, { publicIP: "192.0.2.77", data: "new" }), peer(3));
    expect(machine.lines()).toEqual([
      "remove 10.5.2.0/24 192.0.2.2 [data 2]",
      "add 10.5.2.0/24 192.0.2.77 [new]",
    ]);
    await sync(peer(3));
    expect(machine.lines()).toEqual(["remove 10.5.2.0/24 192.0.2.77 [new]"]);
    await sync();
    expect(machine.lines()).toEqual(["remove 10.5.3.0/24 192.0.2.3 [data 3]"]);
  });

  test("have IPv6 variables", async () => {
    using machine = new Machine();
    const both = { ipv4: true, ipv6: true };
    const SubnetAddCommand =
      'echo "$SUBNET $IPV6SUBNET $PUBLIC_IP $PUBLIC_IPV6 $INTERFACE [$(cat)]" >>"$OUT"';
    const { sync } = await machine.start({ SubnetAddCommand }, both, OWN);
    const ipv6 = { subnet: "fd00:5:2::/64", publicIP: "2001:db8::2", data: "six" };
    await sync({ ...peer(2), ipv6 }, { key: "fd00:5:3::-64", backendType: "extension", ipv6 });
    expect(machine.lines()).toEqual([
      "10.5.2.0/24 fd00:5:2::/64 192.0.2.2 2001:db8::2 ext0 [data 2]",
      "0.0.0.0/0 fd00:5:2::/64 0.0.0.0 2001:db8::2 ext0 [six]",
    ]);
  });

  test("that fail are named with the command's words, tried again, and keep nobody else out", async () => {
    using machine = new Machine();
    const { sync } = await machine.start();
    machine.lines();
    writeFileSync(`${machine.out}.refuse`, "");
    const { failed } = await sync(peer(66), peer(3));
    expect(failed).toEqual([{ key: "10.5.66.0-24", reason: "SubnetAddCommand ended with 1" }]);
    expect(machine.lines().length).toBe(2);
    await sync(peer(66), peer(3));
    expect(machine.lines()).toEqual(["add 10.5.66.0/24 192.0.2.66 [data 66]"]);
    // Half of it may have worked, so it is removed too; and that is tried again as well.
    expect((await sync(peer(3))).failed).toEqual([
      { key: "10.5.66.0-24", reason: "SubnetRemoveCommand ended with 1" },
    ]);
    await run("rm", [`${machine.out}.refuse`]);
    expect((await sync(peer(3))).failed).toEqual([]);
    expect(machine.lines()).toEqual([
      "remove 10.5.66.0/24 192.0.2.66 [data 66]",
      "remove 10.5.66.0/24 192.0.2.66 [data 66]",
    ]);
    await sync(peer(3));
    expect(machine.lines()).toEqual([]);
  });

  test("of another backend, or with data that is no text, get no command and are named", async () => {
    using machine = new Machine();
    const { sync } = await machine.start();
    machine.lines();
    const { ipv4: _, ...bare } = peer(5);
    const without = { ...bare, ipv4: { subnet: "10.5.5.0/24", publicIP: "192.0.2.5" } };
    expect(await sync(peer(2, { backendType: "vxlan" }), peer(3, { data: { a: 1 } }), without)).toEqual({
      failed: [],
      unusable: [
        { key: "10.5.2.0-24", reason: 'uses backend "vxlan", this node uses "extension"' },
        { key: "10.5.3.0-24", reason: "has data that is no text" },
      ],
    });
    expect(machine.lines()).toEqual(["add 10.5.5.0/24 192.0.2.5 []"]);
  });

  test("a command that hangs is ended with its children, and said to be too slow", async () => {
    using machine = new Machine();
    const SubnetAddCommand = '(sleep 300 & echo $! >>"$OUT"; wait); echo never';
    const { sync } = await machine.start({ SubnetAddCommand, Timeout: 1 });
    const { failed } = await sync(peer(2));
    expect(failed).toEqual([
      { key: "10.5.2.0-24", reason: "SubnetAddCommand took longer than 1 s and was ended" },
    ]);
    const [child] = machine.lines().map(Number);
    await until(() => !existsSync(`/proc/${child}`), { message: `child ${child} is gone` });
  }, 20_000);

  test("what commands print is in the log, under the peer's name", async () => {
    using machine = new Machine();
    const { sync } = await machine.start({ SubnetAddCommand: "echo one; echo two >&2" });
    await sync(peer(2));
    expect(machine.log.lines).toEqual([
      { level: "info", message: "SubnetAddCommand: one\ntwo", fields: { peer: "10.5.2.0-24" } },
    ]);
  });
});

describe("over a restart", () => {
  test("all are added again, who vanished is removed, who changed is replaced", async () => {
    using machine = new Machine();
    const before = await machine.start();
    await before.sync(peer(2), peer(3), peer(4));
    await before.backend.stop();
    const { sync } = await machine.start();
    machine.lines();
    await sync(peer(2), peer(3, { data: "new key" }));
    expect(machine.lines()).toEqual([
      "remove 10.5.4.0/24 192.0.2.4 [data 4]",
      "add 10.5.2.0/24 192.0.2.2 [data 2]",
      "remove 10.5.3.0/24 192.0.2.3 [data 3]",
      "add 10.5.3.0/24 192.0.2.3 [new key]",
    ]);
  });

  test("a file that cannot be read is said, and is no hindrance", async () => {
    using machine = new Machine();
    writeFileSync(machine.state, '{"peers": 7}');
    const { sync } = await machine.start();
    expect(machine.log.messages("warn")[0]).toContain(`${machine.state} is not what flanneld wrote`);
    expect(await sync(peer(2))).toEqual({ failed: [], unusable: [] });
    expect(JSON.parse(readFileSync(machine.state, "utf8"))).toHaveProperty("peers");
  });

  test("after ShutdownCommand nothing is remembered; when it fails everything still is", async () => {
    using machine = new Machine();
    const ShutdownCommand = 'echo "down $SUBNET" >>"$OUT"; test ! -e "$OUT.refuse"';
    const before = await machine.start({ ...RECORDING, ShutdownCommand });
    expect(before.backend.stopPatience).toBeGreaterThan(30_000);
    await before.sync(peer(2));
    machine.lines();
    writeFileSync(`${machine.out}.refuse`, "");
    before.stop.abort();
    expect((await refusalOf(before.backend.stop())).message).toBe("ShutdownCommand ended with 1");
    expect(existsSync(machine.state)).toBe(true);
    await run("rm", [`${machine.out}.refuse`]);
    await before.backend.stop();
    expect(machine.lines()).toEqual(["down 10.5.1.0/24", "down 10.5.1.0/24"]);
    const { sync } = await machine.start();
    machine.lines();
    await sync();
    expect(machine.lines()).toEqual([]);
  });
});

describe("cleaning up", () => {
  test("is done by another process too: who is remembered is removed, then all is shut down", async () => {
    using machine = new Machine();
    const options = { ...RECORDING, ShutdownCommand: 'echo "down $SUBNET" >>"$OUT"' };
    await (await machine.start(options)).sync(peer(2));
    machine.lines();
    const { backend, host } = machine.daemon(options);
    const plan = ["peer 10.5.2.0-24: SubnetRemoveCommand", "what ShutdownCommand removes"];
    expect(await backend.cleanup({ dryRun: true, host })).toEqual(plan);
    expect(machine.lines()).toEqual([]);
    expect(await backend.cleanup({ dryRun: false, host })).toEqual(plan);
    expect(machine.lines()).toEqual(["remove 10.5.2.0/24 192.0.2.2 [data 2]", "down 10.5.1.0/24"]);
    expect(existsSync(machine.state)).toBe(false);
    expect(await backend.cleanup({ dryRun: true, host })).toEqual([]);
  });

  test("says what failed, and does the rest", async () => {
    using machine = new Machine();
    const { sync, backend } = await machine.start();
    await sync(peer(66), peer(3));
    writeFileSync(`${machine.out}.refuse`, "");
    const refusal = await refusalOf(backend.cleanup({ dryRun: false }));
    expect(refusal.message).toBe("10.5.66.0-24: SubnetRemoveCommand ended with 1");
    expect(await backend.cleanup({ dryRun: true })).toEqual(["peer 10.5.66.0-24: SubnetRemoveCommand"]);
  });

  test("after a start that failed leaves what the last run made", async () => {
    using machine = new Machine();
    await (await machine.start()).sync(peer(2));
    const { backend, host } = machine.daemon({ ...RECORDING, PreStartupCommand: "exit 1" });
    await refusalOf(backend.prepare(host, FACTS));
    machine.lines();
    expect(await backend.cleanup({ dryRun: false })).toEqual([]);
    expect(machine.lines()).toEqual([]);
  });

  test("after a first start that failed undoes it", async () => {
    using machine = new Machine();
    const { backend, host } = machine.daemon({ ...RECORDING, ShutdownCommand: 'echo down >>"$OUT"' });
    await backend.prepare(host, FACTS);
    expect(await backend.cleanup({ dryRun: false })).toEqual(["what ShutdownCommand removes"]);
    expect(machine.lines().at(-1)).toBe("down");
  });
});

describe("without a shell", () => {
  test("a command is its words, with variables replaced inside of them", async () => {
    using machine = new Machine();
    const SubnetAddCommand = `  tee\t$OUT.$PUBLIC_IP \${OUT}  `;
    const { sync } = await machine.start({ SubnetAddCommand, Shell: false });
    process.env.OUT = machine.out;
    try {
      expect((await sync(peer(2))).failed).toEqual([]);
    } finally {
      delete process.env.OUT;
    }
    expect(readFileSync(`${machine.out}.192.0.2.2`, "utf8")).toBe("data 2\n");
  });

  test("nothing in it is special", () => {
    const environment = { A: "x y", B: "$A" };
    expect(splitCommand(`run '$A' "\${B}"z ; | $ $NONE \${no $(id) \`id\``, environment)).toEqual([
      "run",
      "'x y'",
      '"$A"z',
      ";",
      "|",
      "$",
      "",
      `\${no`,
      "$(id)",
      "`id`",
    ]);
    fc.assert(
      fc.property(fc.array(fc.stringMatching(/^[^\s$]+$/)), (words) => {
        expect(splitCommand(words.join(" \t\n"), {})).toEqual(words);
      }),
    );
  });

  test("a command that is not installed is said by name", async () => {
    using machine = new Machine();
    const refusal = await refusalOf(
      machine.start({ PreStartupCommand: "no-such-command at all", Shell: false }),
    );
    expect(refusal.message).toContain('"no-such-command" is not installed');
  });
});
