import { read } from "bun:ffi";
import {
  closeSync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  readlinkSync,
  statSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { bindLibc } from "../netlink/libc.ts";
import { Fault, toFault } from "../observe/fault.ts";

/** sys/file.h, asm-generic/errno-base.h: EAGAIN is what flock(2) calls EWOULDBLOCK. */
const LOCK_EX = 2;
const LOCK_NB = 4;
const EAGAIN = 11;

/** Times a lock file may be replaced between opening and locking it. */
const MOST_TRIES = 5;

/** The file beside a subnet file that the process which keeps it holds locked. */
export function lockFileOf(subnetFile: string): string {
  return `${subnetFile}.lock`;
}

/**
 * Takes the lock of a subnet file (flock(2)), which ends with the process or with the returned value. The file stays:
 * deleting it would let two processes hold a lock each. Where FFI is not available, the pid it names is looked at.
 * @throws Fault `ALREADY_RUNNING` naming the pid that holds it, `LOCK_FILE` when the file cannot be opened.
 */
export function holdLock(subnetFile: string): Disposable {
  const path = lockFileOf(subnetFile);
  for (let tries = 1; ; tries++) {
    const fd = open(path);
    const taken = lock(fd);
    if (taken === "refused" || (taken === "unknown" && seemsHeld(path))) {
      closeSync(fd);
      throw alreadyRunning(path, subnetFile);
    }
    // Somebody may have removed the file after we opened it: ours is then locked, but nobody else will look at it.
    if (taken === "taken" && !isSame(fd, path) && tries < MOST_TRIES) {
      closeSync(fd);
      continue;
    }
    ftruncateSync(fd, 0);
    writeSync(fd, `${process.pid}\n`, 0);
    return { [Symbol.dispose]: () => closeSync(fd) };
  }
}

/** Pid of the process that holds the lock of a subnet file, as it wrote it; undefined when nobody does. */
export function lockHolder(subnetFile: string): number | "unknown" | undefined {
  const path = lockFileOf(subnetFile);
  let fd: number;
  try {
    fd = openSync(path, "r");
  } catch {
    return undefined;
  }
  try {
    const taken = lock(fd);
    if (taken === "taken" || (taken === "unknown" && !seemsHeld(path))) return undefined;
    return readPid(path) ?? "unknown";
  } finally {
    closeSync(fd);
  }
}

function open(path: string): number {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
    // Neither truncated nor created anew: the holder's pid is in it. Bun opens with O_CLOEXEC, so no child inherits it.
    return openSync(path, "a+", 0o644);
  } catch (error) {
    throw toFault(error, "LOCK_FILE", `cannot open ${path}: `, "Check that the folder can be written.");
  }
}

function lock(fd: number): "taken" | "refused" | "unknown" {
  try {
    const libc = bindLibc({
      flock: { args: ["i32", "i32"], returns: "i32" },
      __errno_location: { args: [], returns: "ptr" },
    });
    const place = libc.__errno_location();
    if (libc.flock(fd, LOCK_EX | LOCK_NB) === 0) return "taken";
    return place !== null && read.i32(place, 0) === EAGAIN ? "refused" : "unknown";
  } catch {
    return "unknown";
  }
}

function isSame(fd: number, path: string): boolean {
  return fstatSync(fd).ino === statSync(path, { throwIfNoEntry: false })?.ino;
}

/** Whether the pid in the file is another process of this executable: the best there is without flock. */
function seemsHeld(path: string): boolean {
  const pid = readPid(path);
  if (pid === undefined || pid === process.pid) return false;
  try {
    return readlinkSync(`/proc/${pid}/exe`) === readlinkSync("/proc/self/exe");
  } catch {
    return false;
  }
}

function readPid(path: string): number | undefined {
  try {
    const pid = Number(readFileSync(path, "utf8").trim());
    return Number.isInteger(pid) && pid > 0 ? pid : undefined;
  } catch {
    return undefined;
  }
}

function alreadyRunning(path: string, subnetFile: string): Fault {
  const pid = readPid(path);
  const who = pid === undefined ? "another flanneld" : `flanneld with pid ${pid}`;
  return new Fault("ALREADY_RUNNING", `${who} keeps ${subnetFile} already (it holds ${path})`, {
    hint: "Stop that one first; a second network on this host needs a --subnet-file, --etcd-prefix and VNI of its own.",
  });
}
