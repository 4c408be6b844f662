import { describe, expect, test } from "bun:test";
import { FLAG_NAMES } from "../../../core/cli/flag-table.ts";
import { type CommandLine, parseCommandLine } from "../../../core/cli/flags.ts";
import { Fault } from "../../../core/observe/fault.ts";

function parse(argv: readonly string[], environment: Record<string, string | undefined> = {}): CommandLine {
  return parseCommandLine(argv, environment);
}

function refusal(argv: readonly string[], environment: Record<string, string | undefined> = {}): Fault {
  try {
    parse(argv, environment);
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
  throw new Error(`accepted: ${argv.join(" ")}`);
}

test("without anything: upstream's defaults", () => {
  const { command, options, explicit, warnings } = parse([]);
  expect(command).toBe("run");
  expect(explicit.size).toBe(0);
  expect(warnings).toEqual([]);
  expect(options).toEqual({
    etcdEndpoints: ["http://127.0.0.1:4001", "http://127.0.0.1:2379"],
    etcdPrefix: "/coreos.com/network",
    etcdKeyfile: undefined,
    etcdCertfile: undefined,
    etcdCafile: undefined,
    etcdUsername: undefined,
    etcdPassword: undefined,
    iface: [],
    ifaceRegex: [],
    ifaceCanReach: undefined,
    subnetFile: "/run/flannel/subnet.env",
    publicIp: undefined,
    publicIpv6: undefined,
    subnetLeaseRenewMargin: 3_600_000,
    ipMasq: false,
    ipMasqFullyRandomDisable: false,
    kubeSubnetMgr: false,
    kubeApiUrl: undefined,
    kubeAnnotationPrefix: "flannel.alpha.coreos.com",
    kubeconfigFile: undefined,
    version: false,
    healthzIp: "0.0.0.0",
    healthzPort: 0,
    iptablesResync: 5_000,
    iptablesForwardRules: true,
    ipBlackholeRoute: false,
    netConfigPath: "/etc/kube-flannel/net-conf.json",
    setNodeNetworkUnavailable: true,
    verbosity: 0,
    vmodule: undefined,
    logBacktraceAt: undefined,
    pluginDir: [],
    allowOverride: [],
    charonExecutable: undefined,
    nodeId: undefined,
    subnetLeaseTtl: 86_400_000,
    subnetLeaseReleaseOnStop: false,
    logFormat: "auto",
  });
});

test("every flag of upstream is known by name", () => {
  const upstream =
    "etcd-endpoints etcd-prefix etcd-keyfile etcd-certfile etcd-cafile etcd-username etcd-password iface iface-regex " +
    "iface-can-reach subnet-file public-ip public-ipv6 subnet-lease-renew-margin ip-masq ip-masq-fully-random-disable " +
    "kube-subnet-mgr kube-api-url kube-annotation-prefix kubeconfig-file version healthz-ip healthz-port iptables-resync " +
    "iptables-forward-rules ip-blackhole-route net-config-path set-node-network-unavailable v vmodule log_backtrace_at";
  const names: readonly string[] = FLAG_NAMES;
  for (const name of upstream.split(" ")) expect(names).toContain(name);
});

describe("Go's flag syntax", () => {
  test.each([
    [["-etcd-prefix=/a"], "/a"],
    [["--etcd-prefix=/a"], "/a"],
    [["-etcd-prefix", "/a"], "/a"],
    [["--etcd-prefix", "/a"], "/a"],
    [["-etcd-prefix", "-a"], "-a"],
    [["-etcd-prefix", "--"], "--"],
    [["-etcd-prefix=a=b"], "a=b"],
    [["-etcd-prefix=/a", "-etcd-prefix=/b"], "/b"],
    [["run", "-etcd-prefix=/a", "--"], "/a"],
  ])("%j", (argv, prefix) => {
    const { options, explicit } = parse(argv);
    expect(options.etcdPrefix).toBe(prefix);
    expect([...explicit]).toEqual(["etcd-prefix"]);
  });

  test.each([
    ...["1", "t", "T", "true", "TRUE", "True"].map((text) => [`-ip-masq=${text}`, true] as const),
    ...["0", "f", "F", "false", "FALSE", "False"].map((text) => [`--ip-masq=${text}`, false] as const),
    ["-ip-masq", true],
    ["--ip-masq", true],
  ])("switch %s", (argument, value) => {
    expect(parse([argument]).options.ipMasq).toBe(value);
  });

  test.each([
    ["10", 10],
    ["0x1F", 31],
    ["0X1f", 31],
    ["0o17", 15],
    ["017", 15],
    ["0b101", 5],
    ["+7", 7],
    ["-5", -5],
    ["1_0", 10],
    ["0x_1", 1],
  ])("integer %s", (text, value) => {
    expect(parse(["-v", text]).options.verbosity).toBe(value);
  });

  test.each([
    "",
    " 1",
    "1.0",
    "1e1",
    "08",
    "0x",
    "x",
    "1__0",
    "_1",
    "1_",
    "--1",
    "true",
    "99999999999999999999",
  ])("no integer: %p", (text) => {
    expect(refusal([`-v=${text}`]).message).toStartWith("flag -v: ");
  });

  test("repeatable flags keep order, commas and all", () => {
    const { options } = parse([
      "-iface",
      "eth0",
      "--iface=10.0.0.1,x",
      "-iface=",
      "-iface-regex=^eth",
      "-plugin-dir=/a",
      "-plugin-dir=/b",
    ]);
    expect(options.iface).toEqual(["eth0", "10.0.0.1,x"]);
    expect(options.ifaceRegex).toEqual(["^eth"]);
    expect(options.pluginDir).toEqual(["/a", "/b"]);
  });

  test.each([
    [["-ip-masq=yes"], "FLAG_INVALID", 'flag -ip-masq: "yes" is neither true nor false', "true|false"],
    [["-ip-masq="], "FLAG_INVALID", 'flag -ip-masq: "" is neither', ""],
    [["-ip-masq", "false"], "FLAG_INVALID", 'argument "false" is stray', "-ip-masq=false"],
    [["-etcd-prefix"], "FLAG_INVALID", "flag -etcd-prefix needs a value", "-etcd-prefix=VALUE"],
    [["stray"], "COMMAND_UNKNOWN", 'command "stray" is unknown', "commands are run"],
    [["run", "stray"], "FLAG_INVALID", 'argument "stray" is stray', "usage: flanneld run"],
    [["-"], "FLAG_INVALID", 'argument "-" is stray', ""],
    [["--", "-ip-masq"], "FLAG_INVALID", 'argument "-ip-masq" is stray', ""],
    [["-v=1", "backends"], "FLAG_INVALID", 'argument "backends" is stray', "the command comes first"],
    [["---v"], "FLAG_INVALID", "an argument begins like a flag", "-name=value"],
    [["-=x"], "FLAG_INVALID", "an argument begins like a flag", "-name=value"],
    [
      ["--etcd-endpoint=http://x"],
      "FLAG_UNKNOWN",
      "flag -etcd-endpoint is unknown",
      "did you mean -etcd-endpoints?",
    ],
    [["-ipmasq"], "FLAG_UNKNOWN", "flag -ipmasq is unknown", "did you mean -ip-masq?"],
    [
      ["-renew-margin=5"],
      "FLAG_UNKNOWN",
      "flag -renew-margin is unknown",
      "did you mean -subnet-lease-renew-margin?",
    ],
    [["-zzzzzz"], "FLAG_UNKNOWN", "flag -zzzzzz is unknown", "flanneld -help"],
    [["-constructor"], "FLAG_UNKNOWN", "flag -constructor is unknown", ""],
    [["-o", "json"], "FLAG_UNKNOWN", "flag -o is unknown", ""],
  ])("refuses %j", (argv, code, message, hint) => {
    const fault = refusal(argv);
    expect(fault.code).toBe(code);
    expect(fault.message).toContain(message);
    expect(fault.hint).toContain(hint);
  });
});

describe("commands", () => {
  test.each([
    [[], "run"],
    [["run"], "run"],
    [["backends"], "backends"],
    [["version"], "version"],
    [["-version"], "version"],
    [["--version=true", "-ip-masq=nonsense"], "version"],
    [["-version=false"], "run"],
    [["help"], "help"],
    [["-h"], "help"],
    [["-v", "1", "--help"], "help"],
  ] as const)("%j is %s", (argv, command) => {
    expect(parse([...argv]).command).toBe(command);
  });

  test("help has a topic", () => {
    expect(parse(["help"]).topic).toBe("run");
    expect(parse(["help", "backends"]).topic).toBe("backends");
    expect(parse(["help", "config", "check"]).topic).toBe("config-check");
    expect(parse(["backends", "-h"]).topic).toBe("backends");
    expect(parse(["config", "-h"]).topic).toBe("config-check");
    expect(parse(["config", "check", "-help"]).topic).toBe("config-check");
    expect(refusal(["help", "bakends"]).hint).toBe("did you mean backends?");
  });

  test("config check takes one file", () => {
    expect(parse(["config", "check", "net.json"]).operand).toBe("net.json");
    expect(parse(["config", "check", "-plugin-dir", "/p", "-", "-v=1"])).toMatchObject({
      command: "config-check",
      operand: "-",
      options: { pluginDir: ["/p"], verbosity: 1 },
    });
    expect(parse(["config", "check", "--", "-odd-name"]).operand).toBe("-odd-name");
    expect(refusal(["config", "check"]).message).toBe("argument FILE is missing");
    expect(refusal(["config", "check", "a", "b"]).message).toBe('argument "b" is stray');
    expect(refusal(["config"]).code).toBe("COMMAND_UNKNOWN");
    expect(refusal(["config", "chek", "f"]).hint).toContain("flanneld config check");
  });

  test("a command has flags of its own, which others do not know", () => {
    const line = parse([
      "leases",
      "reserve",
      "-for",
      "192.0.2.7",
      "10.5.7.0/24",
      "--force",
      "--etcd-prefix=/x",
    ]);
    expect(line).toMatchObject({
      command: "leases-reserve",
      operand: "10.5.7.0/24",
      options: { etcdPrefix: "/x" },
    });
    expect(line.own.get("for")).toBe("192.0.2.7");
    expect(line.own.has("force")).toBe(true);
    expect(parse(["leases", "reserve", "s", "-for=n", "-force=false"]).own.has("force")).toBe(false);
    expect(parse(["cleanup"]).own.has("dry-run")).toBe(false);
    expect(refusal(["cleanup", "-dry-run=perhaps"]).message).toBe(
      'flag -dry-run: "perhaps" is neither true nor false',
    );
    expect(refusal(["leases", "reserve", "s", "-for"]).message).toBe("flag -for needs a value");
    expect(refusal(["cleanup", "--dryrun"]).hint).toBe("did you mean -dry-run?");
    expect(refusal(["probe", "--force"]).code).toBe("FLAG_UNKNOWN");
  });

  test("an argument may be left out where it is optional", () => {
    expect(parse(["probe"]).operand).toBe("");
    expect(parse(["probe", "192.0.2.7"]).operand).toBe("192.0.2.7");
    expect(refusal(["probe", "a", "b"]).message).toBe('argument "b" is stray');
    expect(refusal(["leases", "release"]).message).toBe("argument SUBNET is missing");
    expect(refusal(["leases"]).hint).toContain("flanneld leases ls");
    expect(parse(["help", "leases", "release"]).topic).toBe("leases-release");
    expect(parse(["help", "leases"]).topic).toBe("leases-ls");
  });

  test("backends has an output form", () => {
    expect(parse(["backends"]).output).toBe("text");
    expect(parse(["backends", "-o", "json"]).output).toBe("json");
    expect(parse(["backends", "--o=json"]).output).toBe("json");
    expect(refusal(["backends", "-o", "yaml"]).message).toBe('flag -o: "yaml" is none of text, json');
    expect(refusal(["backends", "-o"]).message).toBe("flag -o needs a value");
  });

  test("a typing mistake", () => {
    expect(refusal(["bakends"])).toMatchObject({ code: "COMMAND_UNKNOWN", hint: "did you mean backends?" });
  });

  test("help and version answer whatever the environment says", () => {
    for (const argv of [["help"], ["version"], ["--version"], ["-h"]]) {
      expect(parse(argv, { FLANNELD_V: "x", FLANNELD_IP_MASQ: "maybe" }).warnings).toEqual([]);
    }
  });
});

describe("environment", () => {
  test("sets what the command line does not", () => {
    const environment = {
      FLANNELD_ETCD_PREFIX: "/env",
      FLANNELD_IP_MASQ: "true",
      FLANNELD_V: "2",
      FLANNELD_VMODULE: "a=1",
    };
    const { options, explicit, warnings } = parse(["-etcd-prefix=/cli"], environment);
    expect(options).toMatchObject({ etcdPrefix: "/cli", ipMasq: true, verbosity: 2, vmodule: "a=1" });
    expect([...explicit].sort()).toEqual(["etcd-prefix", "ip-masq", "v", "vmodule"]);
    expect(warnings).toEqual(["variable FLANNELD_VMODULE has no effect"]);
  });

  test("an empty variable is none", () => {
    const { options, explicit } = parse([], {
      FLANNELD_ETCD_PREFIX: "",
      FLANNELD_IP_MASQ: "",
      FLANNELD_V: undefined,
    });
    expect(options.etcdPrefix).toBe("/coreos.com/network");
    expect(explicit.size).toBe(0);
  });

  test("an interface list is one element", () => {
    expect(parse([], { FLANNELD_IFACE: "eth0,eth1" }).options.iface).toEqual(["eth0,eth1"]);
    expect(parse([], { FLANNELD_IFACE_REGEX: "eth0|eth1" }).options.ifaceRegex).toEqual(["eth0|eth1"]);
    expect(parse(["-iface=lo"], { FLANNELD_IFACE: "eth0" }).options.iface).toEqual(["lo"]);
  });

  test("FLANNELD_VERSION has no effect", () => {
    expect(parse([], { FLANNELD_VERSION: "true" })).toMatchObject({
      command: "run",
      warnings: [],
      options: { version: false },
    });
    expect(parse([], { FLANNELD_VERSION: "v0.28.9" }).command).toBe("run");
  });

  test("a bad value names the variable", () => {
    const fault = refusal([], { FLANNELD_IP_MASQ: "maybe", FLANNELD_LOG_BACKTRACE_AT: "x:1" });
    expect(fault.code).toBe("FLAG_INVALID");
    expect(fault.message).toBe('variable FLANNELD_IP_MASQ: "maybe" is neither true nor false');
    expect(parse(["-ip-masq"], { FLANNELD_IP_MASQ: "maybe" }).options.ipMasq).toBe(true);
  });

  test("unknown variables are warned about, except those of Kubernetes services", () => {
    const { warnings } = parse([], {
      FLANNELD_PUBLIC_PI: "10.0.0.1",
      FLANNELD_SERVICE_HOST: "10.0.0.1",
      FLANNELD_SERVICE_PORT: "8081",
      FLANNELD_SERVICE_PORT_HTTP: "8081",
      FLANNELD_PORT: "tcp://10.0.0.1:8081",
      FLANNELD_PORT_8081_TCP: "tcp://10.0.0.1:8081",
      FLANNELD_PORT_8081_TCP_ADDR: "10.0.0.1",
      FLANNELD_METRICS_SERVICE_HOST: "10.0.0.1",
      FLANNEL_OTHER: "1",
      FLANNELD_QQQ: "1",
    });
    expect(warnings).toEqual([
      "environment variable FLANNELD_PUBLIC_PI is unknown and ignored; did you mean FLANNELD_PUBLIC_IP?",
      "environment variable FLANNELD_QQQ is unknown and ignored",
    ]);
  });

  test("a service called flanneld-healthz does not keep the daemon from starting", () => {
    const { options, warnings } = parse([], { FLANNELD_HEALTHZ_PORT: "tcp://10.0.0.1:8081" });
    expect(options.healthzPort).toBe(0);
    expect(warnings).toEqual([expect.stringContaining("FLANNELD_HEALTHZ_PORT is ignored")]);
    expect(parse([], { FLANNELD_HEALTHZ_PORT: "8081" }).options.healthzPort).toBe(8081);
  });
});
