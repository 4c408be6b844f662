import type { Finding } from "flannel/sdk";
import { FLAG, type Search } from "./charon/find.ts";

/** Peers named in a finding before it says how many more there are. */
const NAMED = 3;

/** There is no charon on this host. */
export function missingFinding({ places }: Search): Finding {
  return {
    code: "IPSEC_CHARON_MISSING",
    severity: "error",
    title: "strongSwan's charon is missing",
    text: `there is no executable charon in ${places.join(", ")}`,
    fix: `Install it (Debian, Ubuntu: strongswan-charon and strongswan-swanctl; Alpine, Red Hat: strongswan), or name it with --${FLAG}.`,
  };
}

/** charon ends, or cannot be asked. */
export function downFinding(why: string): Finding {
  return {
    code: "IPSEC_CHARON_DOWN",
    severity: "error",
    title: "charon does not run",
    text: why,
    fix: "It is started again by itself. Look whether another IKE daemon has UDP ports 500 and 4500, whether it may use them (CAP_NET_BIND_SERVICE), and whether its vici plugin is installed (Debian: strongswan-swanctl).",
  };
}

/** Another one started the charon in use. */
export function foreignFinding(): Finding {
  return {
    code: "IPSEC_CHARON_FOREIGN",
    severity: "info",
    title: "charon is run by somebody else",
    text: "flanneld uses the charon that ran when it started, and leaves it running when it stops",
    fix: "Nothing to do, if that is meant to be so; else disable the strongSwan service of this host.",
  };
}

/** charon moves the packets itself. */
export function userSpaceFinding(): Finding {
  return {
    code: "IPSEC_USERSPACE",
    severity: "info",
    title: "packets are encrypted outside the kernel",
    text: "charon has its plugin kernel-libipsec loaded: it is slower than the kernel, and its tunnels end with it",
    fix: "Unload that plugin where the kernel has ESP (module esp4).",
  };
}

/** Peers whose tunnel is not up although there was time enough. */
export function tunnelFinding(keys: readonly string[]): Finding {
  const more = keys.length > NAMED ? ` and ${keys.length - NAMED} more` : "";
  return {
    code: "IPSEC_TUNNEL_DOWN",
    severity: "warning",
    title: "tunnels to peers are not up",
    text: `${keys.length}: ${keys.slice(0, NAMED).join(", ")}${more}`,
    fix: "Does flanneld run there, with the same PSK and ESPProposal? Do UDP ports 500 and 4500 and ESP (protocol 50) pass between the hosts? charon's lines are in the log.",
  };
}
