import { connect, createServer, type Server, type Socket } from "node:net";

/**
 * A TCP proxy on loopback between a client and an etcd member, for tests that break the network without touching
 * the member.
 */
export class TcpProxy implements AsyncDisposable {
  /** Port clients connect to. */
  readonly port: number;
  /** Connections accepted so far. */
  accepted = 0;
  readonly #server: Server;
  readonly #pairs = new Set<readonly [Socket, Socket | undefined]>();
  #mode: "pass" | "blackhole" | "refuse" = "pass";

  private constructor(server: Server, port: number) {
    this.#server = server;
    this.port = port;
  }

  /** Starts a proxy to `127.0.0.1:targetPort`. */
  static async start(targetPort: number): Promise<TcpProxy> {
    const server = createServer({ pauseOnConnect: true });
    const port = await new Promise<number>((resolve) => {
      server.listen(0, "127.0.0.1", () => resolve((server.address() as { port: number }).port));
    });
    const proxy = new TcpProxy(server, port);
    server.on("connection", (socket: Socket) => proxy.#accept(socket, targetPort));
    return proxy;
  }

  /** URL of the proxy as an etcd endpoint. */
  get endpoint(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Lets everything through again. What hung in a black hole goes on. */
  pass(): void {
    this.#mode = "pass";
    for (const [near, far] of this.#pairs) {
      near.resume();
      far?.resume();
    }
  }

  /** Takes connections and bytes, answers nothing: a firewall that drops, a machine that lost its power. */
  blackhole(): void {
    this.#mode = "blackhole";
    for (const [near, far] of this.#pairs) {
      near.pause();
      far?.pause();
    }
  }

  /** Ends every connection and every new one at once. */
  refuse(): void {
    this.#mode = "refuse";
    this.cut();
  }

  /** Ends the connections of the moment; new ones work. */
  cut(): void {
    for (const [near, far] of this.#pairs) {
      near.destroy();
      far?.destroy();
    }
    this.#pairs.clear();
  }

  #accept(near: Socket, targetPort: number): void {
    this.accepted += 1;
    near.on("error", () => {});
    if (this.#mode === "refuse") {
      near.destroy();
      return;
    }
    const far = connect(targetPort, "127.0.0.1");
    const pair = [near, far] as const;
    this.#pairs.add(pair);
    const end = () => {
      this.#pairs.delete(pair);
      near.destroy();
      far.destroy();
    };
    far.on("error", end);
    near.on("close", end);
    far.on("close", end);
    // Not pipe(): a paused source must stay paused, whatever the sink drains.
    near.on("data", (chunk) => far.write(chunk));
    far.on("data", (chunk) => near.write(chunk));
    if (this.#mode === "blackhole") far.pause();
    else near.resume();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.refuse();
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
    });
  }
}
