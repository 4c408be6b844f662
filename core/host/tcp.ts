import { connect } from "node:net";

/** How an attempt to connect ended. `refused`: a reset came back, so segments pass in both directions. */
export type TcpOutcome =
  | { readonly outcome: "accepted" | "refused" | "timeout" }
  | { readonly outcome: "unreachable"; readonly reason: string };

/** Connects to a port and hangs up at once. `patience` in ms. Never rejects. */
export function tryTcp(address: string, port: number, patience: number): Promise<TcpOutcome> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port });
    const end = (outcome: TcpOutcome) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(outcome);
    };
    const timer = setTimeout(() => end({ outcome: "timeout" }), patience);
    socket.once("connect", () => end({ outcome: "accepted" }));
    socket.once("error", ({ code = "" }: NodeJS.ErrnoException) => {
      if (code === "ECONNREFUSED" || code === "ECONNRESET") end({ outcome: "refused" });
      else if (code === "ETIMEDOUT") end({ outcome: "timeout" });
      else end({ outcome: "unreachable", reason: code });
    });
  });
}
