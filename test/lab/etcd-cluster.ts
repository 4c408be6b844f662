import { EtcdServer, type EtcdServerOptions } from "./etcd.ts";
import { freePorts } from "./ports.ts";

/** Several members that form one cluster, all on loopback. */
export class EtcdCluster implements AsyncDisposable {
  readonly members: readonly EtcdServer[];

  private constructor(members: readonly EtcdServer[]) {
    this.members = members;
  }

  /** Starts `size` members and waits until all serve. */
  static async start(size: number, options: EtcdServerOptions = {}): Promise<EtcdCluster> {
    const ports = await freePorts(size * 2);
    const names = Array.from({ length: size }, (_, n) => `m${n}`);
    const initial = names.map((name, n) => `${name}=http://127.0.0.1:${ports[size + n]}`).join(",");
    const members = names.map((name, n) =>
      EtcdServer.prepare(
        // Several members on a busy machine: short election time-outs would lose the leader again and again.
        {
          ...options,
          args: ["--heartbeat-interval", "50", "--election-timeout", "500", ...(options.args ?? [])],
        },
        ports[n] ?? 0,
        ports[size + n] ?? 0,
        name,
        initial,
      ),
    );
    for (const member of members) member.spawn();
    const cluster = new EtcdCluster(members);
    try {
      await Promise.all(members.map((member) => member.ready()));
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
    return cluster;
  }

  get endpoints(): string[] {
    return this.members.map((member) => member.endpoint);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.members.map((member) => member[Symbol.asyncDispose]()));
  }
}
