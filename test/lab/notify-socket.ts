import { dlopen, ptr } from "bun:ffi";
import { rmSync } from "node:fs";
import { PATIENCE } from "./until.ts";

const { symbols: libc } = dlopen("libc.so.6", {
  socket: { args: ["i32", "i32", "i32"], returns: "i32" },
  bind: { args: ["i32", "ptr", "u32"], returns: "i32" },
  recv: { args: ["i32", "ptr", "i32", "i32"], returns: "i32" },
  close: { args: ["i32"], returns: "i32" },
});

/** linux/socket.h, asm-generic/socket.h, asm-generic/fcntl.h. */
const AF_UNIX = 1;
const SOCK_DGRAM = 2;
const SOCK_CLOEXEC = 0o2000000;
const SOCK_NONBLOCK = 0o4000;
/** sizeof(sun_path), unix(7). */
const LONGEST_PATH = 107;
/** To look is dear where a processor is emulated, and takes it from what is waited for. */
const POLL_MS = PATIENCE > 1 ? 50 : 5;

/**
 * What systemd is to a `Type=notify` service: a datagram socket at `path` that records every message, one entry
 * per datagram (a byte stream would run `READY=1` and the next message together). A leading `@` means an abstract
 * name, which lives in the network namespace that the socket is made in.
 */
export class NotifySocket implements Disposable {
  readonly path: string;
  /** Datagrams in order of arrival, e.g. `READY=1\nSTATUS=…`. */
  readonly messages: string[] = [];
  readonly #fd: number;
  readonly #timer: ReturnType<typeof setInterval>;
  readonly #buffer = new Uint8Array(4096);
  #closed = false;

  constructor(path: string) {
    const bytes = new TextEncoder().encode(path);
    if (bytes.length > LONGEST_PATH) throw new Error(`socket path too long: ${path}`);
    const abstract = path.startsWith("@");
    const address = new Uint8Array(2 + bytes.length + (abstract ? 0 : 1));
    new DataView(address.buffer).setUint16(0, AF_UNIX, true);
    address.set(bytes, 2);
    if (abstract) address[2] = 0;
    this.path = path;
    this.#fd = libc.socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (this.#fd < 0) throw new Error("cannot open a unix datagram socket");
    if (libc.bind(this.#fd, ptr(address), address.length) !== 0) {
      libc.close(this.#fd);
      throw new Error(`cannot bind the notify socket ${path}`);
    }
    this.#timer = setInterval(() => this.#drain(), POLL_MS);
    this.#timer.unref();
  }

  /** Whether a line of some message equals `line`, e.g. `READY=1`. */
  has(line: string): boolean {
    this.#drain();
    return this.messages.some((message) => message.split("\n").includes(line));
  }

  #drain(): void {
    while (!this.#closed) {
      const length = libc.recv(this.#fd, ptr(this.#buffer), this.#buffer.length, 0);
      if (length <= 0) return;
      this.messages.push(new TextDecoder().decode(this.#buffer.subarray(0, length)));
    }
  }

  [Symbol.dispose](): void {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#timer);
    libc.close(this.#fd);
    if (!this.path.startsWith("@")) rmSync(this.path, { force: true });
  }
}
