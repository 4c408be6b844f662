import { PSK } from "../ipsec-lab.ts";

/** Options of the backends that are tried, by type. */
export const BACKENDS = {
  vxlan: {},
  "host-gw": {},
  udp: {},
  alloc: {},
  ipip: {},
  wireguard: {},
  ipsec: { PSK },
  extension: {
    SubnetAddCommand: "ip route replace $SUBNET via $PUBLIC_IP dev ext0 proto 150",
    SubnetRemoveCommand: "ip route flush exact $SUBNET",
    ShutdownCommand: "ip route flush proto 150",
  },
} as const;
export type Type = keyof typeof BACKENDS;

/** What tells that a backend was here (alloc makes nothing): devices, and what lies outside of them. By lines. */
export const TRACES: Readonly<Record<Type, RegExp>> = {
  vxlan: /\bflannel\.\d/,
  "host-gw":
    /10\.244\.\d+\.0\/24 (nhid \d+ )?via \S+ dev ext0 proto 140|^id \d+ via \S+ dev ext0 .*proto 140/,
  udp: /\bflannel0\b/,
  alloc: /^$/,
  ipip: /\bflannel\.ipip\b/,
  wireguard:
    /\bflannel-wg\b|blackhole .*metric \d{5,}.*proto 140|blackhole .*proto 140.*metric \d{5,}|wireguard-go/,
  ipsec:
    /^xfrm|charon|\bipsec\d|lookup 220|10\.244\.\d+\.0(\/32)? (dev|scope global) lo|blackhole 10\.244\.0\.0\/16 proto 140(?!.* metric )|10\.244\.\d+\.0\/24 dev ext0/,
  extension: /proto 150/,
};

/** Lines of the hosts' states that tell of other backends than this one, with whose they are. */
export function tracesOfOthers(states: readonly (readonly string[])[], type: Type): readonly string[] {
  const others = (Object.keys(TRACES) as Type[]).filter((other) => other !== type && other !== "alloc");
  return states.flatMap((lines, n) =>
    lines
      .filter((line) => !TRACES[type].test(line))
      .flatMap((line) =>
        others.filter((other) => TRACES[other].test(line)).map((other) => `h${n + 1}: ${other} left ${line}`),
      ),
  );
}
