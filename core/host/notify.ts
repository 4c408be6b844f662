import { ptr } from "bun:ffi";
import { bindLibc } from "../netlink/libc.ts";
import { run } from "./exec.ts";

/** socket(2), sendto(2): AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, MSG_NOSIGNAL (linux/socket.h). */
const AF_UNIX = 1;
const DGRAM_CLOEXEC = 2 | 0o2000000;
const MSG_NOSIGNAL = 0x4000;

/**
 * Tells the service manager about a state change (sd_notify(3)), e.g. `READY=1` or `STOPPING=1`. `socketPath` is
 * NOTIFY_SOCKET: a path, or an abstract name with a leading `@`. Returns whether the datagram was sent; without a
 * socket it is simply not sent. Without FFI (a unit with MemoryDenyWriteExecute) systemd-notify(1) is left to send it,
 * in the name of its parent, which is this process: such a unit would else be killed as one that never gets ready.
 */
export function notifyServiceManager(state: string, socketPath = process.env.NOTIFY_SOCKET): boolean {
  if (!socketPath) return false;
  try {
    return sendDatagram(socketPath, new TextEncoder().encode(state));
  } catch {
    run("systemd-notify", [state], { env: { NOTIFY_SOCKET: socketPath } }).catch(() => undefined);
    return false;
  }
}

function sendDatagram(path: string, message: Uint8Array): boolean {
  const libc = bindLibc({
    socket: { args: ["i32", "i32", "i32"], returns: "i32" },
    sendto: { args: ["i32", "ptr", "u64", "i32", "ptr", "u32"], returns: "i64" },
    close: { args: ["i32"], returns: "i32" },
  });
  const fd = libc.socket(AF_UNIX, DGRAM_CLOEXEC, 0);
  if (fd < 0) return false;
  const address = encodeAddress(path);
  const sent = libc.sendto(fd, ptr(message), message.length, MSG_NOSIGNAL, ptr(address), address.length);
  libc.close(fd);
  return Number(sent) === message.length;
}

/** struct sockaddr_un: family, then the path with its NUL, or NUL and the abstract name. */
function encodeAddress(path: string): Uint8Array {
  const name = new TextEncoder().encode(path);
  const abstract = path.startsWith("@");
  const address = new Uint8Array(2 + name.length + (abstract ? 0 : 1));
  address[0] = AF_UNIX;
  address.set(name, 2);
  if (abstract) address[2] = 0;
  return address;
}
