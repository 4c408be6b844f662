import { FLAG_NAMES, type FlagName, flagSpec } from "./flag-table.ts";

export type Command =
  | "run"
  | "status"
  | "explain"
  | "journal"
  | "leases-ls"
  | "leases-reserve"
  | "leases-release"
  | "check"
  | "probe"
  | "cleanup"
  | "bundle"
  | "docker-opts"
  | "backends"
  | "config-check"
  | "version"
  | "help";

/** A flag that only one command has; `placeholder` is empty for a switch. */
export interface OwnFlag {
  readonly placeholder: string;
  readonly help: string;
}

export interface CommandSpec {
  /** The words that call it. */
  readonly words: readonly string[];
  /** What follows the words. */
  readonly usage: string;
  readonly summary: string;
  /** Flags that act in it; the others are accepted everywhere, so that one set of flags fits all commands. */
  readonly flags: readonly FlagName[];
  /** Name of the one argument it takes. */
  readonly operand?: string;
  /** The argument may be left out. */
  readonly operandOptional?: true;
  /** Flags of this command alone, by name. */
  readonly own?: Readonly<Record<string, OwnFlag>>;
  /** Whether it knows `-o text|json`. */
  readonly hasOutput?: true;
}

const PLUGIN_FLAGS = FLAG_NAMES.filter((name) => flagSpec(name).group === "plugins");
const ETCD_FLAGS = FLAG_NAMES.filter((name) => flagSpec(name).group === "etcd");
const INTERFACE_FLAGS = FLAG_NAMES.filter((name) => flagSpec(name).group === "interface");
const FORCE = { placeholder: "" };

export const COMMANDS: Readonly<Record<Command, CommandSpec>> = {
  run: {
    words: ["run"],
    usage: "[FLAG]…",
    summary: "Run the daemon; what happens without a command.",
    flags: FLAG_NAMES,
  },
  status: {
    words: ["status"],
    usage: "[-o text|json] [FLAG]…",
    summary:
      "Tell how the daemon on this host stands: lease, peers, findings. Exit code 0: ready, 1: not ready, 2: it cannot be asked.",
    flags: ["subnet-file"],
    hasOutput: true,
  },
  explain: {
    words: ["explain"],
    usage: "IP [-o text|json] [FLAG]…",
    summary:
      "Tell whose address it is, how this node reaches it, and what led to that. Exit code 0: it is reached, 1: it is not, 2: the daemon cannot be asked.",
    flags: ["subnet-file"],
    operand: "IP",
    hasOutput: true,
  },
  journal: {
    words: ["journal"],
    usage: "[-o text|json] [FLAG]…",
    summary: "Print the last events of the daemon on this host. Exit code 2: it cannot be asked.",
    flags: ["subnet-file"],
    hasOutput: true,
  },
  "leases-ls": {
    words: ["leases", "ls"],
    usage: "[-o text|json] [FLAG]…",
    summary: "List all leases with owner, age, time left, and what is wrong with them.",
    flags: ETCD_FLAGS,
    hasOutput: true,
  },
  "leases-reserve": {
    words: ["leases", "reserve"],
    usage: "SUBNET --for IP|NODE-ID [--force] [FLAG]…",
    summary:
      "Keep a subnet for one node for ever: a key without expiry, which that node takes at its next start.",
    flags: ETCD_FLAGS,
    operand: "SUBNET",
    own: {
      for: {
        placeholder: "IP|NODE-ID",
        help: "The node: the address that other nodes reach it at, or the node id that flanneld leases ls shows.",
      },
      force: { ...FORCE, help: "Also where that node already holds the subnet: its lease loses its expiry." },
    },
  },
  "leases-release": {
    words: ["leases", "release"],
    usage: "SUBNET [--force] [FLAG]…",
    summary: "Delete the lease or reservation of a subnet, so that others can get it.",
    flags: ETCD_FLAGS,
    operand: "SUBNET",
    own: {
      force: {
        ...FORCE,
        help: "Also a lease that a node still renews; that node reports a conflict or takes it back.",
      },
    },
  },
  check: {
    words: ["check"],
    usage: "[-o text|json] [FLAG]…",
    summary:
      "Look for what would keep flanneld from working on this host, before it is started; changes nothing.",
    flags: [...ETCD_FLAGS, ...INTERFACE_FLAGS, "subnet-file", ...PLUGIN_FLAGS],
    hasOutput: true,
  },
  probe: {
    words: ["probe"],
    usage: "[PEER] [-o text|json] [FLAG]…",
    summary:
      "Send packets to every peer over the overlay: round trip, largest packet, TCP. PEER narrows it down: an address, a subnet or a node id.",
    flags: [...ETCD_FLAGS, "subnet-file"],
    operand: "PEER",
    operandOptional: true,
    hasOutput: true,
  },
  cleanup: {
    words: ["cleanup"],
    usage: "[--dry-run] [-o text|json] [FLAG]…",
    summary:
      "Remove everything flanneld made on this host, and prove that it is gone. Refuses while flanneld runs.",
    flags: [...ETCD_FLAGS, "subnet-file", ...PLUGIN_FLAGS],
    hasOutput: true,
    own: { "dry-run": { placeholder: "", help: "Print what would be removed, and remove nothing." } },
  },
  bundle: {
    words: ["bundle"],
    usage: "[FILE] [FLAG]…",
    summary:
      "Write an archive for whoever helps: status, config, leases, kernel state, versions; without secrets.",
    flags: [...ETCD_FLAGS, ...INTERFACE_FLAGS, "subnet-file", ...PLUGIN_FLAGS],
    operand: "FILE",
    operandOptional: true,
  },
  "docker-opts": {
    words: ["docker-opts"],
    usage: "[-d FILE|-] [-i] [-c] [-k NAME] [-m] [FLAG]…",
    summary: "Turn the subnet file into options for dockerd, as mk-docker-opts.sh does.",
    flags: ["subnet-file"],
    own: {
      f: { placeholder: "FILE", help: "The subnet file, instead of --subnet-file." },
      d: {
        placeholder: "FILE|-",
        help: "The file to write; - is standard output. Default: /run/docker_opts.env.",
      },
      i: {
        placeholder: "",
        help: "One variable for each option: DOCKER_OPT_BIP, …. Without -i and -c both forms.",
      },
      c: { placeholder: "", help: "One variable for all options." },
      k: { placeholder: "NAME", help: "Name of that variable. Default: DOCKER_OPTS." },
      m: { placeholder: "", help: "Leave out --ip-masq." },
    },
  },
  backends: {
    words: ["backends"],
    usage: "[-o text|json] [FLAG]…",
    summary: "List the backends this daemon has, each with its state and the reason for it.",
    flags: PLUGIN_FLAGS,
    hasOutput: true,
  },
  "config-check": {
    words: ["config", "check"],
    usage: "FILE|- [FLAG]…",
    summary: "Check a network config as the daemon would; - is standard input.",
    flags: PLUGIN_FLAGS,
    operand: "FILE",
  },
  version: { words: ["version"], usage: "", summary: "Print the version.", flags: [] },
  help: { words: ["help"], usage: "[COMMAND]", summary: "Explain a command.", flags: [] },
};

export const COMMAND_NAMES = Object.keys(COMMANDS) as readonly Command[];
