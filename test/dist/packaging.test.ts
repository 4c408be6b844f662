import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const DIST = resolve(import.meta.dir, "../../dist");
const SUBNET_FILE = `FLANNEL_NETWORK=10.1.0.0/16
FLANNEL_SUBNET=10.1.74.1/24
FLANNEL_MTU=1472
FLANNEL_IPMASQ=false
`;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "flannel-packaging-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function run(script: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const { exitCode, stdout, stderr } = Bun.spawnSync(["sh", join(DIST, script), ...args], {
    env: { PATH: process.env.PATH ?? "", ...env },
  });
  return { code: exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
}

describe("mk-docker-opts.sh", () => {
  const INDIVIDUAL = `DOCKER_OPT_BIP="--bip=10.1.74.1/24"
DOCKER_OPT_IPMASQ="--ip-masq=true"
DOCKER_OPT_MTU="--mtu=1472"
`;
  const COMBINED = `DOCKER_OPTS=" --bip=10.1.74.1/24 --ip-masq=true --mtu=1472"
`;

  function options(
    text: string | undefined,
    args: readonly string[],
    env: Readonly<Record<string, string>> = {},
  ) {
    const input = join(folder, "subnet.env");
    const output = join(folder, "docker.env");
    if (text !== undefined) writeFileSync(input, text);
    const result = run("mk-docker-opts.sh", ["-f", input, "-d", output, ...args], env);
    return { ...result, written: existsSync(output) ? readFileSync(output, "utf8") : undefined };
  }

  test.each([
    ["both forms by default", [], INDIVIDUAL + COMBINED],
    ["-i: one variable an option", ["-i"], INDIVIDUAL],
    ["-c: one for all", ["-c"], COMBINED],
    [
      "-k: under another name",
      ["-k", "CUSTOM_KEY"],
      INDIVIDUAL + COMBINED.replace("DOCKER_OPTS", "CUSTOM_KEY"),
    ],
    [
      "-m: without --ip-masq",
      ["-m"],
      INDIVIDUAL.replace(/DOCKER_OPT_IPMASQ.*\n/, "") + COMBINED.replace(" --ip-masq=true", ""),
    ],
  ])("%s", (_name, args, expected) => {
    expect(options(SUBNET_FILE, args)).toMatchObject({ code: 0, written: expected });
  });

  test("one of the two masquerades", () => {
    const masquerading = SUBNET_FILE.replace("IPMASQ=false", "IPMASQ=true");
    expect(options(masquerading, ["-i"]).written).toContain('DOCKER_OPT_IPMASQ="--ip-masq=false"');
  });

  test("variables of the caller are taken along, in alphabetical order", () => {
    const { written } = options(SUBNET_FILE, [], {
      DOCKER_OPTS: "--debug",
      DOCKER_OPT_DNS: "--dns=192.0.2.53",
    });
    expect(written).toContain(
      'DOCKER_OPTS="--debug --bip=10.1.74.1/24 --dns=192.0.2.53 --ip-masq=true --mtu=1472"',
    );
  });

  test("a missing subnet file gives no options", () => {
    expect(options(undefined, [])).toMatchObject({ code: 0, written: 'DOCKER_OPTS=""\n' });
  });

  test("a bad FLANNEL_IPMASQ is refused by name", () => {
    const result = options(SUBNET_FILE.replace("IPMASQ=false", "IPMASQ=maybe"), []);
    expect(result).toMatchObject({ code: 1, written: undefined });
    expect(result.stderr).toContain("maybe");
  });

  test.each(["-h", "-?"])("%s shows the usage", (flag) => {
    const result = options(SUBNET_FILE, [flag]);
    expect(result.code).toBe(1);
    expect(result.stderr).toContain("-k");
  });
});

describe("install.sh and uninstall.sh", () => {
  function list(root: string): string[] {
    return readdirSync(root, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(root.length))
      .sort();
  }

  test("install twice, uninstall twice: nothing but the settings is left, nothing with --purge", () => {
    const root = join(folder, "root");
    mkdirSync(join(root, "etc/systemd/network"), { recursive: true });
    mkdirSync(join(root, "etc/NetworkManager"), { recursive: true });
    const binary = join(folder, "flanneld");
    writeFileSync(binary, "#!/bin/sh\n");
    const install = ["--root", root, "--binary", binary];
    expect(run("install.sh", install).code).toBe(0);
    const settings = join(root, "etc/flannel/flanneld.env");
    writeFileSync(settings, "FLANNELD_IFACE=eth1\n");
    expect(run("install.sh", install).code).toBe(0);
    expect(list(root)).toEqual([
      "/etc/NetworkManager/conf.d/flannel.conf",
      "/etc/flannel/flanneld.env",
      "/etc/systemd/network/50-flannel.link",
      "/etc/systemd/network/50-flannel.network",
      "/etc/systemd/system/flanneld.service",
      "/usr/local/bin/flanneld",
      "/usr/local/libexec/flannel/mk-docker-opts.sh",
    ]);
    expect(readFileSync(settings, "utf8")).toBe("FLANNELD_IFACE=eth1\n");
    expect(statSync(join(root, "usr/local/bin/flanneld")).mode & 0o777).toBe(0o755);
    for (const _ of [1, 2]) expect(run("uninstall.sh", ["--root", root]).code).toBe(0);
    expect(list(root)).toEqual(["/etc/flannel/flanneld.env"]);
    expect(run("uninstall.sh", ["--root", root, "--purge"]).code).toBe(0);
    expect(list(root)).toEqual([]);
  });

  test("without the executable nothing is installed", () => {
    const root = join(folder, "root");
    const result = run("install.sh", ["--root", root, "--binary", join(folder, "none")]);
    expect(result.code).toBe(1);
    expect(result.stderr).toContain("npm run build");
    expect(existsSync(root)).toBe(false);
  });
});

describe("systemd unit", () => {
  const unit = readFileSync(join(DIST, "systemd/flanneld.service"), "utf8");

  test("notifies, and leaves the JIT compiler, which the kernel interface needs", () => {
    expect(unit).toContain("Type=notify");
    expect(unit).not.toMatch(/^MemoryDenyWriteExecute=/m);
    expect(unit).toMatch(/^UnsetEnvironment=.*BUN_OPTIONS/m);
  });

  test("gives a stop the time that a backend may take for it", () => {
    const seconds = Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1]);
    const backends = resolve(DIST, "../backends");
    const times = readdirSync(backends).map((name) => {
      const manifest = JSON.parse(readFileSync(join(backends, name, "plugin.json"), "utf8"));
      return Number(manifest.timeouts?.stop ?? 0);
    });
    expect(Math.max(...times)).toBeGreaterThan(0);
    expect(seconds * 1_000).toBeGreaterThanOrEqual(Math.max(...times));
  });
});
