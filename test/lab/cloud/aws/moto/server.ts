import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Namespace } from "../../../namespace.ts";
import { until } from "../../../until.ts";

/** By the host's name and the region in it, moto knows whom a request is for. */
const HOST = "ec2.eu-west-1.amazonaws.com";
/** Headers that hold for one connection only (RFC 9110, 7.6.1), or that are written anew. */
const HOP = ["connection", "content-length", "accept-encoding", "host"];

/** Where moto lies, or why it cannot be had on this machine. */
export type Preparation = { readonly folder: string } | { readonly obstacle: string };

/**
 * moto's EC2 API as a process: in a namespace without any network, reached through a socket in the file system. Its
 * state goes with it. The first preparation on a machine takes a minute (test/setup.sh starts it in advance).
 */
export class MotoServer implements AsyncDisposable {
  readonly #child: Bun.Subprocess;
  readonly #socket: string;
  readonly #stack: AsyncDisposableStack;

  private constructor(child: Bun.Subprocess, socket: string, stack: AsyncDisposableStack) {
    this.#child = child;
    this.#socket = socket;
    this.#stack = stack;
  }

  /** Gets it ready; never rejects. */
  static async prepare(): Promise<Preparation> {
    const child = Bun.spawn(["bash", join(import.meta.dir, "prepare.sh")], {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const [folder, said, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    if (code === 0) return { folder: folder.trim() };
    return { obstacle: said.trim().split("\n").at(-1) ?? `prepare.sh ended with ${code}` };
  }

  /** Starts it and waits until it answers. */
  static async start(folder: string): Promise<MotoServer> {
    await using stack = new AsyncDisposableStack();
    const directory = mkdtempSync(join(tmpdir(), "flannel-moto-"));
    stack.defer(() => rmSync(directory, { recursive: true, force: true }));
    const namespace = stack.use(await Namespace.create("moto"));
    const inside = `/run/${namespace.name}.sock`;
    const root = join(folder, "root");
    const socket = join(root, inside);
    stack.defer(() => rmSync(socket, { force: true }));
    const log = Bun.file(join(directory, "log"));
    const child = Bun.spawn(
      [
        ...["ip", "netns", "exec", namespace.name, "chroot", root],
        ...["moto_server", "-H", `unix://${inside}`],
      ],
      { stdin: "ignore", stdout: log, stderr: log, env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" } },
    );
    stack.defer(async () => {
      if (child.exitCode === null) child.kill("SIGKILL");
      await child.exited;
    });
    const server = new MotoServer(child, socket, stack.move());
    try {
      await until(async () => (await server.answer(new Request(`http://${HOST}/moto-api/`))).status === 200, {
        message: async () => `moto does not answer\n${(await log.text()).slice(-2_000)}`,
        deadline: 60_000,
        interval: 100,
      });
    } catch (error) {
      await server[Symbol.asyncDispose]();
      throw error;
    }
    return server;
  }

  /** Passes a request on, and its answer back. */
  async answer(request: Request): Promise<Response> {
    if (this.#child.exitCode !== null) throw new Error(`moto ended with ${this.#child.exitCode}`);
    const { pathname, search } = new URL(request.url);
    const headers = new Headers(request.headers);
    for (const name of HOP) headers.delete(name);
    const body = request.method === "POST" ? await request.arrayBuffer() : null;
    const answer = await fetch(`http://${HOST}${pathname}${search}`, {
      unix: this.#socket,
      method: request.method,
      headers,
      body,
    });
    const type = answer.headers.get("content-type") ?? "text/xml";
    return new Response(await answer.arrayBuffer(), {
      status: answer.status,
      headers: { "content-type": type },
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}
