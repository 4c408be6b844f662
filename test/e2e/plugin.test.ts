/**
 * The walk-through of docs/plugins.md, followed to the letter on two hosts, until their pods talk over the changed
 * copy of the template.
 *
 *   pod ── cni0 ── h1 ── ext0 ─┬─ switch + etcd ─┬─ ext0 ── h2 ── cni0 ── pod
 */
import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readDocument, repository } from "../docs/markdown.ts";
import { matches, readTranscript, type Step } from "../docs/transcript.ts";
import { Cluster } from "../lab/cluster.ts";
import { executable } from "../lab/daemon.ts";
import type { Host } from "../lab/host.ts";
import { ping } from "../lab/ping.ts";
import type { Pod } from "../lab/pod.ts";
import { until } from "../lab/until.ts";

const SECTION = "From the template to a plugin of your own";

test("two hosts that follow the document end with pods that ping each other", async () => {
  await using cluster = await Cluster.create({ hosts: 2, config: null });
  const steps = readSteps();
  const starts = steps.findIndex(isStart);
  expect(starts).toBeGreaterThan(2);
  for (const host of cluster.hosts) {
    const shell = new Shell(cluster, host);
    for (const { command, output } of steps.slice(0, starts)) {
      const { printed, code } = await shell.run(command);
      expect({ command, printed, code }).toMatchObject({ code: 0 });
      if (/^flanneld /.test(command))
        expect({ shown: output, printed, same: matches(output, printed) }).toMatchObject({ same: true });
    }
    const log = shell.start(steps[starts]!.command);
    await until(() => / ready /.test(log()), {
      message: () => `${host.name} is ready\n${log()}`,
      deadline: 30_000,
    });
    expect(log()).toMatch(/backend acme plugin=acme version=\d/);
  }
  const [p1, p2] = (await cluster.addPods()) as [Pod, Pod];
  expect((await ping(p1, p2.ipv4)).received).toBe(3);
  expect((await ping(p2, p1.ipv4)).received).toBe(3);
  // The metric of the document's config: it is this plugin's route.
  const [h1] = cluster.hosts as [Host];
  expect(await h1.namespace.exec("ip", "route", "show", "proto", "140")).toMatch(
    /^10\.5\.\d+\.0\/24 .*via 192\.0\.2\.2 dev ext0 metric 50 ?$/m,
  );
}, 120_000);

/** The commands of the section in their order, with the output shown for them. */
function readSteps(): readonly Step[] {
  const document = readDocument("docs/plugins.md");
  const from = document.indexOf(`## ${SECTION}\n`);
  expect(from).toBeGreaterThan(0);
  const section = document.slice(from, document.indexOf("\n## ", from));
  return [...section.matchAll(/^```(\w*)[^\n]*\n([\s\S]*?)^```$/gm)].flatMap(
    ([, language = "", text = ""]) =>
      text.startsWith("$ ") ? readTranscript(text) : language === "sh" ? [{ command: text, output: "" }] : [],
  );
}

/** The daemon itself, as opposed to its sub-commands. */
function isStart({ command }: Step): boolean {
  return /^flanneld( -|$)/.test(command);
}

/** A root shell on a host whose /etc/flannel and /run are its own; the working directory goes on from run to run. */
class Shell {
  readonly #host: Host;
  readonly #home: string;
  readonly #command: readonly string[];

  constructor(cluster: Cluster, host: Host) {
    this.#host = host;
    this.#home = join(host.directory, "home");
    for (const folder of ["bin", "etc/flannel", "flannel"])
      mkdirSync(join(this.#home, folder), { recursive: true });
    symlinkSync(executable(), join(this.#home, "bin/flanneld"));
    writeFileSync(join(this.#home, "cwd"), repository);
    // The namespace command gives every run its own mounts: nothing of this is seen outside.
    const mounts = [
      `mount -t overlay -o lowerdir=${this.#home}/etc:/etc overlay /etc`,
      `mount --bind ${this.#home}/flannel /etc/flannel`,
      "mount -t tmpfs none /run && mkdir /run/flannel",
      `mount --bind ${host.directory} /run/flannel`,
      `cd "$(cat ${this.#home}/cwd)"`,
      `trap 'pwd >${this.#home}/cwd' EXIT`,
      'eval "$1"',
    ].join("\n");
    this.#command = [
      "env",
      `PATH=${this.#home}/bin:${process.env.PATH ?? ""}`,
      "ETCDCTL_API=3",
      `ETCDCTL_ENDPOINTS=${cluster.etcd.endpoint}`,
      `FLANNELD_ETCD_ENDPOINTS=${cluster.etcd.endpoint}`,
      "sh",
      "-ec",
      mounts,
      "sh",
    ];
  }

  /** Runs a command to its end; both output streams are read as one. */
  async run(text: string): Promise<{ printed: string; code: number }> {
    const { stdout, stderr, exitCode } = await this.#host.namespace.run([
      ...this.#command,
      `exec 2>&1\n${text}`,
    ]);
    return { printed: stdout + stderr, code: exitCode };
  }

  /** Starts a command that goes on until the host is disposed; the function returned reads what it wrote so far. */
  start(text: string): () => string {
    const log = join(this.#home, "log");
    writeFileSync(log, "");
    this.#host.namespace.spawn(...this.#command, `exec >${log} 2>&1\n${text}`);
    return () => readFileSync(log, "utf8");
  }
}
