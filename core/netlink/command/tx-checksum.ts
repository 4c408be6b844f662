import { linkMissingFault, permissionFault, refusalFault } from "../faults.ts";
import { attempt, type Run } from "./run.ts";

const FEATURE = "tx-checksum-ip-generic";

/** `ethtool -k DEV`, undefined when the device (or an old ethtool) does not tell. */
export async function readTxChecksumByCommand(run: Run, dev: string): Promise<boolean | undefined> {
  const { stdout, stderr, failed } = await attempt(run, "ethtool", ["-k", dev]);
  if (failed) throw refusal(dev, "read", stderr);
  const state = new RegExp(`^\\s*${FEATURE}: (on|off)`, "m").exec(stdout)?.[1];
  return state === undefined ? undefined : state === "on";
}

/** `ethtool -K DEV tx-checksum-ip-generic on|off`; throws as Kernel.setTxChecksum does. */
export async function writeTxChecksumByCommand(run: Run, dev: string, on: boolean): Promise<void> {
  const { stderr, failed } = await attempt(run, "ethtool", ["-K", dev, FEATURE, on ? "on" : "off"]);
  if (failed) throw refusal(dev, `turn ${on ? "on" : "off"}`, stderr);
}

function refusal(dev: string, what: string, stderr: string): Error {
  if (/no such device/i.test(stderr)) return linkMissingFault(dev);
  if (/not permitted/i.test(stderr)) return permissionFault(`${what} the checksum offload of "${dev}"`);
  const text = stderr.trim().split("\n").at(-1) ?? "";
  return refusalFault(`${what} the transmit checksum offload of "${dev}"`, { errno: 0, text });
}
