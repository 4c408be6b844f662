import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../lab/until.ts";
import type { TunnelEnd } from "./tunnel-end.ts";

const SOURCE = join(import.meta.dir, "udp-proxy.c");
const DEVICE = "flannel0";
/** Inner MTU on an underlay of 1,500 bytes. */
const MTU = 1_472;

/** The proxy in C, compiled; gone at the end of the scope. */
export class ProxyProgram implements Disposable {
  readonly file: string;
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
    this.file = join(folder, "udp-proxy");
  }

  /** `gcc -O2`. Throws with the compiler's words. */
  static async compile(): Promise<ProxyProgram> {
    if (Bun.which("gcc") === null) throw new Error("gcc is not installed (Debian: gcc, libc6-dev)");
    const program = new ProxyProgram(mkdtempSync(join(tmpdir(), "flannel-proxy-")));
    const child = Bun.spawn(["gcc", "-O2", "-Wall", "-o", program.file, SOURCE], { stderr: "pipe" });
    const words = await child.stderr.text();
    if ((await child.exited) !== 0) throw new Error(`gcc: ${words}`);
    return program;
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Starts the proxy on both hosts and sets the devices up as flanneld does; resolves when both forward. */
export async function startProxies(
  program: ProxyProgram,
  ends: readonly [TunnelEnd, TunnelEnd],
  network: string,
): Promise<readonly Bun.Subprocess[]> {
  return await Promise.all(
    ends.map(async ({ host, address }, n) => {
      const peer = ends[1 - n] as TunnelEnd;
      const { namespace } = host;
      const child = namespace.spawn(program.file, DEVICE, host.ipv4, peer.host.ipv4, "8285");
      await until(async () => (await namespace.run(["ip", "link", "show", DEVICE])).exitCode === 0, {
        message: () => `${host.name}: the proxy made no device`,
      });
      await namespace.ip(`address add ${address}/32 dev ${DEVICE}`);
      await namespace.ip(`link set ${DEVICE} mtu ${MTU} up`);
      await namespace.ip(`route add ${network} dev ${DEVICE}`);
      return child;
    }),
  );
}
