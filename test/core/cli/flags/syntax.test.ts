import { describe, expect, test } from "bun:test";
import { FLAG_NAMES } from "../../../../core/cli/flag-table.ts";
import { parse, refusal } from "./parse.ts";

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
