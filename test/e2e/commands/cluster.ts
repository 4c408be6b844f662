import { afterAll, beforeAll, expect, setDefaultTimeout } from "bun:test";
import { Cluster } from "../../lab/cluster.ts";
import type { Host } from "../../lab/host.ts";
import type { Ran } from "../../lab/namespace.ts";
import { type CommandOptions, runCommand } from "../command.ts";

/** A dual-stack cluster for the tests of a file, where commands are run as an operator does. */
export class CommandCluster {
  #cluster: Cluster | undefined;

  /** Lays it out before the tests of the file, with daemons on the first hosts, and removes it after them. */
  constructor({ hosts, running }: { readonly hosts: number; readonly running: number }) {
    setDefaultTimeout(60_000);
    beforeAll(async () => {
      this.#cluster = await Cluster.create({ hosts, family: "dual" });
      const started = this.hosts.slice(0, running).map((host) => this.cluster.startDaemon(host));
      await Promise.all(started.map((daemon) => daemon.ready));
    }, 60_000);
    afterAll(() => this.#cluster?.[Symbol.asyncDispose]());
  }

  get cluster(): Cluster {
    if (!this.#cluster) throw new Error("the tests have not begun");
    return this.#cluster;
  }

  get hosts(): readonly Host[] {
    return this.cluster.hosts;
  }

  /** A host by its number, from 1; throws when there is none. */
  host(number: number): Host {
    const host = this.hosts[number - 1];
    if (!host) throw new Error(`there is no host ${number}`);
    return host;
  }

  /** Runs a command of the executable. */
  run(host: Host, args: readonly string[], options: CommandOptions = {}): Promise<Ran> {
    return runCommand(this.cluster, host, args, options);
  }

  /** Runs a command with `-o json`; its exit code and what it printed, of which `Shown` are the parts looked at. */
  async ask<Shown>(
    host: Host,
    args: readonly string[],
    options: CommandOptions = {},
  ): Promise<{ readonly code: number; readonly json: Shown }> {
    const { stdout, stderr, exitCode } = await this.run(host, [...args, "-o", "json"], options);
    expect(stderr).toBe("");
    return { code: exitCode, json: JSON.parse(stdout) };
  }
}

/** The codes of findings, in their order. */
export function codesOf(findings: readonly { readonly code: string }[]): readonly string[] {
  return findings.map(({ code }) => code);
}
