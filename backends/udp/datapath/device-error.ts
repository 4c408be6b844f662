import { describeErrno } from "../system/errno.ts";

/** The TUN device or a socket is of no use any more. */
export class DeviceError extends Error {
  /** @param errno positive errno. */
  constructor(errno: number) {
    super(describeErrno(errno));
  }
}
