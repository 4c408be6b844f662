import { existsSync } from "node:fs";
import { Fault } from "flannel/sdk";
import { describeErrno, EACCES, EBUSY, EINVAL, ENODEV, ENOENT, ENXIO, EPERM } from "./errno.ts";
import { asPointer, type Libc, openLibc, pointerTo } from "./libc.ts";

/** The TUN device, named as upstream's template `flannel%d` names the first one. */
export const DEVICE = "flannel0";
const PATH = "/dev/net/tun";

/** linux/if_tun.h: the requests are the same on every architecture this program is built for. */
const TUNSETIFF = 0x400454ca;
const TUNSETPERSIST = 0x400454cb;
const TUNSETOFFLOAD = 0x400454d0;
const TUNSETVNETHDRSZ = 0x400454d8;
const IFF_TUN = 0x1;
const IFF_NO_PI = 0x1000;
const IFF_VNET_HDR = 0x4000;
const TUN_F_CSUM = 0x01;
const TUN_F_TSO4 = 0x02;
const TUN_F_TSO6 = 0x04;
const TUN_F_USO4 = 0x20;
const TUN_F_USO6 = 0x40;
/** open(2), asm-generic/fcntl.h. */
const O_RDWR = 0x2;
const O_NONBLOCK = 0o4000;
const O_CLOEXEC = 0o2000000;
/** sizeof(struct ifreq), and where its flags are (linux/if.h). */
const IFREQ_LENGTH = 40;
const IFREQ_FLAGS = 16;
/** sizeof(struct virtio_net_hdr) (linux/virtio_net.h). */
export const VNET_HEADER_LENGTH = 10;

/** The open device. */
export interface Tun {
  readonly fd: number;
  /** Whether each packet is preceded by a virtio_net_hdr; without one there are no offloads. */
  readonly vnetHeader: boolean;
  /** Whether the kernel hands over, and takes, TCP in pieces larger than the MTU. */
  readonly tcpOffload: boolean;
  /** The same for UDP (Linux ≥ 6.2). */
  readonly udpOffload: boolean;
}

/**
 * `ip tuntap add flannel0 mode tun` and opens it: an existing one is adopted. The device is persistent, so that its
 * addresses and routes outlive this process and nothing leaves in clear text while it restarts.
 * Throws Fault `UDP_TUN_MISSING`, `UDP_TUN_BUSY`, `UDP_TUN_REFUSED`.
 */
export function openTun(offload: boolean): Tun {
  const libc = openLibc();
  const fd = openDevice(libc);
  try {
    const vnetHeader = offload && attach(libc, fd, IFF_TUN | IFF_NO_PI | IFF_VNET_HDR) === 0;
    const errno = vnetHeader ? 0 : attach(libc, fd, IFF_TUN | IFF_NO_PI);
    if (errno !== 0) throw refusedFault(errno);
    libc.ioctl(fd, TUNSETPERSIST, asPointer(1));
    // A device that is adopted still has the offloads of whoever had it before.
    libc.ioctl(fd, TUNSETOFFLOAD, asPointer(0));
    if (!vnetHeader) return { fd, vnetHeader, tcpOffload: false, udpOffload: false };
    libc.ioctl(fd, TUNSETVNETHDRSZ, pointerTo(new Int32Array([VNET_HEADER_LENGTH, 0])));
    const tcp = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6;
    const udpOffload = libc.ioctl(fd, TUNSETOFFLOAD, asPointer(tcp | TUN_F_USO4 | TUN_F_USO6)) === 0;
    const tcpOffload = udpOffload || libc.ioctl(fd, TUNSETOFFLOAD, asPointer(tcp)) === 0;
    return { fd, vnetHeader, tcpOffload, udpOffload };
  } catch (error) {
    libc.close(fd);
    throw error;
  }
}

/**
 * `ip tuntap del flannel0 mode tun`; one that is not there is success. Throws as {@link openTun} when it cannot be had.
 */
export function removeTun(): void {
  const libc = openLibc();
  const fd = openDevice(libc);
  try {
    const errno = attach(libc, fd, IFF_TUN | IFF_NO_PI);
    if (errno !== 0) throw refusedFault(errno);
    libc.ioctl(fd, TUNSETPERSIST, asPointer(0));
  } finally {
    libc.close(fd);
  }
}

function openDevice(libc: Libc): number {
  const path = new TextEncoder().encode(`${PATH}\0`);
  const fd = libc.open(pointerTo(path), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (fd >= 0) return fd;
  const errno = libc.errno();
  const isMissing = [ENOENT, ENODEV, ENXIO].includes(errno);
  throw new Fault("UDP_TUN_MISSING", `cannot open ${PATH}: ${describeErrno(errno)}`, {
    hint: isMissing
      ? "Load it: modprobe tun; in a container, pass the device in (docker: --device /dev/net/tun)."
      : "In a container, allow the device 10:200 (docker: --device /dev/net/tun).",
  });
}

/** 0, or the errno. */
function attach(libc: Libc, fd: number, flags: number): number {
  const request = new Uint8Array(IFREQ_LENGTH);
  new TextEncoder().encodeInto(DEVICE, request);
  new DataView(request.buffer).setUint16(IFREQ_FLAGS, flags, true);
  return libc.ioctl(fd, TUNSETIFF, pointerTo(request)) === 0 ? 0 : libc.errno();
}

function refusedFault(errno: number): Fault {
  if (errno === EBUSY) {
    return new Fault("UDP_TUN_BUSY", `device ${DEVICE} is in use by another process`, {
      hint: `Stop the other flanneld (\`lsof ${PATH}\` shows who has the device open).`,
    });
  }
  const hints: Readonly<Record<number, string>> = {
    [EPERM]: "Give flanneld CAP_NET_ADMIN.",
    [EACCES]: "Give flanneld CAP_NET_ADMIN.",
    [EINVAL]: `There is another kind of device of that name: rename or delete it (ip link delete ${DEVICE}).`,
  };
  return new Fault("UDP_TUN_REFUSED", `cannot make device ${DEVICE}: ${describeErrno(errno)}`, {
    hint: hints[errno] ?? "See the kernel's log: dmesg.",
  });
}

/** Whether there is a TUN device of our name in this network namespace, open or not. */
export function findTun(): boolean {
  return existsSync(`/sys/class/net/${DEVICE}/tun_flags`);
}
