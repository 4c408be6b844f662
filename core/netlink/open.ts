import { Fault } from "../observe/fault.ts";
import type { Log } from "../observe/log.ts";
import { CommandKernel } from "./command/kernel.ts";
import type { Run } from "./command/run.ts";
import type { Kernel } from "./kernel.ts";
import { RtnetlinkKernel } from "./rtnetlink.ts";

/**
 * The kernel over rtnetlink, or over `ip` and `bridge` (through `run`) where foreign functions cannot be called,
 * which is logged once. Throws Fault `FFI_UNAVAILABLE` when that is so and no `run` was given, `NETLINK_SOCKET` when
 * the kernel grants no socket.
 */
export async function openKernel(log: Log, run?: Run): Promise<Kernel> {
  try {
    return new RtnetlinkKernel();
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== "FFI_UNAVAILABLE" || !run) throw error;
    log.warn("programming the kernel through `ip` and `bridge`, which is slower and notices changes late", {
      code: error.code,
      reason: error.message,
      fix: error.hint,
    });
    return CommandKernel.open(run);
  }
}
