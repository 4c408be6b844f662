import { Fault } from "../observe/fault.ts";
import { Pace } from "../retry/pace.ts";
import { Turns } from "../retry/turns.ts";
import { describeErrno, ENOENT, EPERM, ESRCH } from "./errno.ts";
import { type Encode, Exchange } from "./exchange.ts";
import { encodePolicyDump, encodeStateDump, encodeXfrmChange } from "./families/xfrm.ts";
import { NETLINK_XFRM } from "./families/xfrm-constants.ts";
import { decodePolicy, decodeState } from "./families/xfrm-state.ts";
import { permissionFault, refusalFault } from "./faults.ts";
import type { MessageCursor } from "./wire/reader.ts";
import type { XfrmChange, XfrmFailure, XfrmPolicyState, XfrmState } from "./xfrm-objects.ts";

/** Room for one change: a policy with its template takes under 300 bytes. */
const REQUEST_BYTES = 1024;
const RECEIVE_BUFFER = 1024 * 1024;

/** IPsec over netlink; the socket is opened with the first call, in the namespace its thread is in then. */
export class XfrmExchange {
  readonly #turns = new Turns();
  #opened: Exchange | undefined;

  /** See Kernel.xfrmPolicies. */
  policies(): Promise<XfrmPolicyState[]> {
    return this.#dump("list the IPsec policies", encodePolicyDump, decodePolicy);
  }

  /** See Kernel.xfrmStates. */
  states(): Promise<XfrmState[]> {
    return this.#dump("list the IPsec states", encodeStateDump, decodeState);
  }

  /** See Kernel.applyXfrm. */
  apply(changes: readonly XfrmChange[]): Promise<XfrmFailure[]> {
    const exchange = this.#open();
    return this.#turns.take(async () => {
      const failures: XfrmFailure[] = [];
      const pace = new Pace();
      for (const change of changes) {
        const text = applyOne(exchange, change);
        if (text !== undefined) failures.push({ change, text });
        await pace.advance(1);
      }
      return failures;
    });
  }

  /** Idempotent. */
  close(): void {
    this.#opened?.close();
  }

  #dump<T>(what: string, encode: Encode, decode: (message: MessageCursor) => T | undefined): Promise<T[]> {
    const exchange = this.#open();
    return this.#turns.take(async () => {
      const { refusal, items } = await exchange.dump(encode, decode);
      if (refusal) throw refusalFault(what, refusal);
      return items;
    });
  }

  #open(): Exchange {
    this.#opened ??= openExchange();
    return this.#opened;
  }
}

function openExchange(): Exchange {
  try {
    return new Exchange({ batchBytes: REQUEST_BYTES, receiveBuffer: RECEIVE_BUFFER, protocol: NETLINK_XFRM });
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== "NETLINK_SOCKET") throw error;
    throw new Fault("XFRM_UNAVAILABLE", `the kernel offers no IPsec: ${error.message}`, {
      hint: "Load the module with `modprobe xfrm_user`; a kernel without CONFIG_XFRM_USER cannot do it.",
      cause: error,
    });
  }
}

/** Why a change was refused, undefined when it was not. Throws Fault `NETLINK_PERMISSION`. */
function applyOne(exchange: Exchange, change: XfrmChange): string | undefined {
  try {
    const { refusal } = exchange.request((builder, sequence) => encodeXfrmChange(builder, sequence, change));
    if (refusal === undefined) return undefined;
    if (refusal.errno === EPERM) throw permissionFault("change IPsec policies");
    // Gone already.
    if (change.action === "delete" && (refusal.errno === ENOENT || refusal.errno === ESRCH)) return undefined;
    return describeErrno(refusal.errno, refusal.text);
  } catch (error) {
    if (error instanceof Fault && error.code === "NETLINK_BAD_OBJECT") return error.message;
    throw error;
  }
}
