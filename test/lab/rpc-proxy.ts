import {
  connect,
  createServer,
  type Http2Server,
  type Http2Session,
  type ServerHttp2Stream,
} from "node:http2";

/**
 * A gRPC-aware proxy to an etcd member: it can refuse calls by name, which a TCP proxy cannot. Plain http only.
 */
export class RpcProxy implements AsyncDisposable {
  readonly port: number;
  /** Calls seen, by full name such as `/etcdserverpb.KV/Range`. */
  readonly calls = new Map<string, number>();
  /** Decides which calls fail with UNAVAILABLE (gRPC status 14). */
  refuse: (call: string) => boolean = () => false;
  /** What a call is refused with, in the words of etcd for instance. */
  words = "turned down by the test";
  /** Decides which calls are done by the member while their answer is lost: they fail with UNAVAILABLE as well. */
  lose: (call: string) => boolean = () => false;
  readonly #server: Http2Server;
  readonly #sessions = new Set<Http2Session>();

  private constructor(server: Http2Server, port: number) {
    this.#server = server;
    this.port = port;
  }

  /** Starts a proxy to `127.0.0.1:targetPort`. */
  static async start(targetPort: number): Promise<RpcProxy> {
    const server = createServer();
    const port = await new Promise<number>((resolve) => {
      server.listen(0, "127.0.0.1", () => resolve((server.address() as { port: number }).port));
    });
    const proxy = new RpcProxy(server, port);
    server.on("session", (session) => {
      const target = connect(`http://127.0.0.1:${targetPort}`);
      for (const one of [session, target]) {
        proxy.#sessions.add(one);
        one.on("error", () => {});
        one.on("close", () => proxy.#sessions.delete(one));
      }
      session.on("close", () => target.destroy());
      target.on("close", () => session.destroy());
      session.on("stream", (stream, headers) => proxy.#forward(stream as ServerHttp2Stream, headers, target));
    });
    return proxy;
  }

  /** URL of the proxy as an etcd endpoint. */
  get endpoint(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  #forward(
    near: ServerHttp2Stream,
    headers: Record<string, unknown>,
    target: ReturnType<typeof connect>,
  ): void {
    const call = String(headers[":path"]);
    this.calls.set(call, (this.calls.get(call) ?? 0) + 1);
    near.on("error", () => {});
    if (this.refuse(call)) {
      fail(near, this.words);
      return;
    }
    const lost = this.lose(call);
    const passed = Object.fromEntries(
      Object.entries(headers).filter(([name]) => !name.startsWith(":") && name !== "host"),
    ) as Record<string, string>;
    const far = target.request({ ":method": "POST", ":path": call, ...passed });
    far.on("error", () => near.close());
    let trailers: Record<string, string> = {};
    far.on("response", (answer) => {
      if (lost) return;
      const { ":status": status, ...rest } = answer;
      near.respond({ ":status": status ?? 200, ...rest }, { waitForTrailers: true });
    });
    far.on("trailers", (given) => {
      trailers = given as Record<string, string>;
    });
    near.on("wantTrailers", () => near.sendTrailers(trailers));
    near.on("data", (chunk) => far.write(chunk));
    near.on("end", () => far.end());
    far.on("data", (chunk) => lost || near.write(chunk));
    far.on("end", () => (lost ? fail(near, this.words) : near.end()));
    near.on("close", () => far.close());
  }

  /** Ends the connections of the moment; new ones work. */
  cut(): void {
    for (const session of this.#sessions) session.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
    });
  }
}

/** Ends a call with gRPC status UNAVAILABLE. */
function fail(stream: ServerHttp2Stream, words: string): void {
  stream.respond(
    {
      ":status": 200,
      "content-type": "application/grpc",
      "grpc-status": "14",
      "grpc-message": words,
    },
    { endStream: true },
  );
}
