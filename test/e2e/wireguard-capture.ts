import { expect } from "bun:test";
import { type Host, UNDERLAY } from "../lab/host.ts";
import { hasV4, SWITCH_NUMBER } from "../lab/segment.ts";
import { until } from "../lab/until.ts";

/** What anybody on the wire could read: packets with pods' addresses, bare or in vxlan. */
const CLEAR = "net 10.244.0.0/16 or net fd00:10:244::/48 or udp port 8472";

/** Of the packet that ends a capture. */
const MARK_PORT = 51899;

/** Watches the underlay of a host for packets of pods in clear, and counts encrypted ones beside them. */
export class Capture implements AsyncDisposable {
  readonly #child: ReturnType<Host["namespace"]["spawn"]>;
  readonly #reading: Promise<unknown>;
  readonly #clear: string[] = [];
  readonly #host: Host;
  #encrypted = 0;
  #marked = false;
  #errors = "";

  private constructor(host: Host) {
    this.#host = host;
    const filter = `${CLEAR} or udp port 51820 or udp port 51821 or udp port ${MARK_PORT}`;
    const options = ["-l", "-nn", "--immediate-mode", "-i", UNDERLAY];
    this.#child = host.namespace.spawn("tcpdump", ...options, filter);
    this.#reading = Promise.all([this.#read(this.#child.stdout), this.#readErrors(this.#child.stderr)]);
  }

  /** Resolves when packets are seen. */
  static async start(host: Host): Promise<Capture> {
    const capture = new Capture(host);
    await until(() => capture.#errors.includes("listening on"), {
      message: () => `tcpdump listens: ${capture.#errors}`,
    });
    return capture;
  }

  /** Ends it: the packets in clear, and how many encrypted ones there were (some, or it saw nothing at all). */
  async stop(): Promise<{ readonly clear: readonly string[]; readonly encrypted: number }> {
    // Packets are told in their order: with a last one of our own, all before it have been.
    const { family, namespace } = this.#host;
    const { segment } = this.#host.switch;
    const to = hasV4(family)
      ? `UDP4-SENDTO:${segment.ipv4(SWITCH_NUMBER)}`
      : `UDP6-SENDTO:[${segment.ipv6(SWITCH_NUMBER)}]`;
    await until(
      async () => {
        await namespace.run(["socat", "-u", "-", `${to}:${MARK_PORT}`], { input: "end" });
        return this.#marked;
      },
      { message: "the capture sees its mark", interval: 100 },
    );
    this.#child.kill("SIGINT");
    await Promise.all([this.#child.exited, this.#reading]);
    return { clear: this.#clear, encrypted: this.#encrypted };
  }

  async #read(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    let rest = "";
    for await (const chunk of stream) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line.includes(`.${MARK_PORT}: `)) this.#marked = true;
        else if (/\.5182[01] > |\.5182[01]: /.test(line)) this.#encrypted++;
        // What a packet carries is printed below it, without the time.
        else if (/^\d/.test(line)) this.#clear.push(line);
      }
    }
  }

  async #readErrors(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    for await (const chunk of stream) this.#errors += decoder.decode(chunk, { stream: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null) this.#child.kill("SIGKILL");
    await this.#child.exited;
  }
}

/** Ends the captures; nothing of what they saw was in clear, and each saw something. */
export async function expectEncrypted(captures: readonly Capture[]): Promise<void> {
  for (const capture of captures) {
    const { clear, encrypted } = await capture.stop();
    expect(clear).toEqual([]);
    expect(encrypted).toBeGreaterThan(0);
  }
}
