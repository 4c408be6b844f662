import { describeErrno, EACCES, ENODEV, EOPNOTSUPP, EPERM } from "./errno.ts";
import { linkMissingFault, permissionFault, refusalFault } from "./faults.ts";
import { openLibc, pointerTo } from "./libc.ts";

/** linux/sockios.h: the one ioctl behind ethtool(8); any socket of the network namespace serves. */
const SIOCETHTOOL = 0x8946;
/** linux/ethtool.h: get and set transmit checksum offload, all of NETIF_F_CSUM_MASK at once. */
const ETHTOOL_GTXCSUM = 0x16;
const ETHTOOL_STXCSUM = 0x17;
/** linux/if.h, struct ifreq on 64-bit: the name, then the pointer to ethtool's structure, padded to 40 bytes. */
const NAME_BYTES = 16;
const IFREQ_BYTES = 40;

/** `ethtool -k DEV`: whether transmit checksum offload is on, undefined when the device cannot tell. */
export function readTxChecksum(fd: number, dev: string): boolean | undefined {
  const { errno, data } = request(fd, dev, ETHTOOL_GTXCSUM, 0);
  if (errno === 0) return data !== 0;
  if (errno === EOPNOTSUPP) return undefined;
  throw refusal(dev, "read", errno);
}

/**
 * `ethtool -K DEV tx-checksum-ip-generic on|off`. Throws Fault `LINK_MISSING`, `NETLINK_PERMISSION` or, where the
 * device's is fixed, `NETLINK_REFUSED`.
 */
export function writeTxChecksum(fd: number, dev: string, on: boolean): void {
  const { errno } = request(fd, dev, ETHTOOL_STXCSUM, on ? 1 : 0);
  if (errno !== 0) throw refusal(dev, `turn ${on ? "on" : "off"}`, errno);
}

function request(fd: number, dev: string, command: number, data: number): { errno: number; data: number } {
  const libc = openLibc();
  const value = new Uint32Array([command, data]);
  const ifreq = new Uint8Array(IFREQ_BYTES);
  // The last byte stays 0.
  ifreq.set(new TextEncoder().encode(dev).subarray(0, NAME_BYTES - 1));
  new DataView(ifreq.buffer).setBigUint64(NAME_BYTES, BigInt(pointerTo(value)), true);
  if (libc.ioctl(fd, SIOCETHTOOL, pointerTo(ifreq)) < 0) return { errno: libc.errno(), data: 0 };
  return { errno: 0, data: value[1] ?? 0 };
}

function refusal(dev: string, what: string, errno: number): Error {
  if (errno === ENODEV) return linkMissingFault(dev);
  if (errno === EPERM || errno === EACCES) return permissionFault(`${what} the checksum offload of "${dev}"`);
  return refusalFault(
    `${what} the transmit checksum offload of "${dev}"`,
    { errno, text: "" },
    describeHint(errno),
  );
}

function describeHint(errno: number): string {
  return errno === EOPNOTSUPP
    ? "This device's offload is fixed; leave ChecksumOffload at auto."
    : `Try it by hand with ethtool -K; the kernel said ${describeErrno(errno)}.`;
}
