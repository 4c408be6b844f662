import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { formatDuration, parseDuration } from "../../../core/cli/duration.ts";
import { FLAG_NAMES, flagSpec } from "../../../core/cli/flag-table.ts";
import { describeOptions, type Options, parseCommandLine } from "../../../core/cli/flags.ts";
import { compileGoRegex } from "../../../core/config/regex.ts";
import { Fault } from "../../../core/observe/fault.ts";

// Property tests on a busy machine take longer than the 5 s Bun grants.
setDefaultTimeout(60_000);

function options(...argv: string[]): Options {
  return parseCommandLine(argv, {}).options;
}

function refusal(argv: readonly string[], environment: Record<string, string> = {}): Fault {
  try {
    parseCommandLine(argv, environment);
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
  throw new Error(`accepted: ${argv.join(" ")}`);
}

describe("etcd endpoints", () => {
  test.each([
    ["http://127.0.0.1:2379", ["http://127.0.0.1:2379"]],
    [
      " https://etcd-0.example:2379/ ,, http://[fd00::1]:2379,",
      ["https://etcd-0.example:2379", "http://[fd00::1]:2379"],
    ],
    ["https://etcd", ["https://etcd"]],
  ])("%p", (written, wanted) => {
    expect(options("-etcd-endpoints", written).etcdEndpoints).toEqual(wanted);
  });

  test.each([
    "127.0.0.1:2379",
    "etcd:2379",
    "ftp://etcd:21",
    "http://",
    "http:///x",
    "http://h:99999",
    "http://h:port",
    "unix:///run/etcd",
    "http://a:1,b:2",
    "http://h:1/v3",
    "http://h:1?x=1",
    "http://h:1#x",
    "http://a b:1",
  ])("refuses %p", (written) => {
    const fault = refusal([`-etcd-endpoints=${written}`]);
    expect(fault.code).toBe("FLAG_INVALID");
    expect(fault.message).toStartWith(`flag -etcd-endpoints: "${written}" `);
  });

  test("none are needed with Kubernetes", () => {
    expect(refusal(["-etcd-endpoints= , "]).message).toBe("flag -etcd-endpoints names no endpoint");
    expect(options("-etcd-endpoints=", "-kube-subnet-mgr").etcdEndpoints).toEqual([]);
  });
});

describe("lease times", () => {
  test.each([
    [[], 86_400_000, 3_600_000],
    [["-subnet-lease-renew-margin=1439"], 86_400_000, 86_340_000],
    [["-subnet-lease-renew-margin=0x1e"], 86_400_000, 1_800_000],
    [["-subnet-lease-renew-margin=10s"], 86_400_000, 10_000],
    [["-subnet-lease-ttl=1h"], 3_600_000, 1_200_000],
    [["-subnet-lease-ttl=5s"], 5_000, 1_666],
    [["-subnet-lease-ttl=3h"], 10_800_000, 3_600_000],
    [["-subnet-lease-ttl=30s", "-subnet-lease-renew-margin=10s"], 30_000, 10_000],
    [["-subnet-lease-ttl=61m", "-subnet-lease-renew-margin=60"], 3_660_000, 3_600_000],
  ])("%j", (argv, ttl, margin) => {
    expect(options(...argv)).toMatchObject({ subnetLeaseTtl: ttl, subnetLeaseRenewMargin: margin });
  });

  test.each([
    [["-subnet-lease-renew-margin=0"], "is below 1"],
    [["-subnet-lease-renew-margin=1440"], "is above 1439"],
    [["-subnet-lease-renew-margin=-1"], "is below 1"],
    [["-subnet-lease-renew-margin=0s"], "is too short"],
    [["-subnet-lease-renew-margin=24h"], "is too long"],
    [["-subnet-lease-renew-margin=soon"], "is no duration"],
    [["-subnet-lease-ttl=4s"], "is too short; nearest legal value is 5s"],
    [["-subnet-lease-ttl=86400"], "is no duration such as"],
    [["-subnet-lease-ttl=100000h"], "is too long"],
    [["-subnet-lease-ttl=1h", "-subnet-lease-renew-margin=60"], "1h is not less than the ttl of 1h"],
    [["-subnet-lease-ttl=30s", "-subnet-lease-renew-margin=31s"], "31s is not less than the ttl of 30s"],
  ])("refuses %j", (argv, message) => {
    expect(refusal(argv).message).toContain(message);
  });

  test("a margin from the environment is explicit too", () => {
    const fault = refusal(["-subnet-lease-ttl=30m"], { FLANNELD_SUBNET_LEASE_RENEW_MARGIN: "60" });
    expect(fault.message).toBe(
      "variable FLANNELD_SUBNET_LEASE_RENEW_MARGIN: 1h is not less than the ttl of 30m",
    );
    expect(fault.hint).toContain("10m");
  });
});

describe("other values", () => {
  test("addresses become canonical", () => {
    expect(options("-public-ipv6=FD00::0001").publicIpv6).toBe("fd00::1");
    expect(options("-public-ip=").publicIp).toBeUndefined();
    expect(options("-iface-can-reach=FD00::1").ifaceCanReach).toBe("fd00::1");
  });

  test.each([
    [["-public-ip=fd00::1"], 'flag -public-ip: "fd00::1" is no IPv4 address'],
    [["-public-ip=10.0.0.01"], "is no IPv4 address"],
    [["-public-ip=::ffff:10.0.0.1"], "is no IPv4 address"],
    [["-public-ipv6=10.0.0.1"], "is no IPv6 address"],
    [["-iface-can-reach=host"], "is no IP address"],
    [["-iface-regex=eth", "-iface-regex=("], 'flag -iface-regex: "eth, (" is no regular expression'],
    [["-healthz-port=65536"], "is above 65535"],
    [["-iptables-resync=0"], "is below 1"],
    [["-log-format=xml"], '"xml" is none of auto, json, text'],
    [["-etcd-prefix="], '"" must not be empty'],
    [["-node-id=a b"], "is no identifier"],
    [["-kube-api-url=api"], "is no URL"],
    [["-etcd-keyfile=k"], "flag -etcd-keyfile lacks its certificate"],
    [["-etcd-certfile=c"], "flag -etcd-certfile lacks its key"],
    [["-etcd-username=u"], "flag -etcd-username lacks its password"],
  ])("refuses %j", (argv, message) => {
    const fault = refusal(argv);
    expect(fault.code).toBe("FLAG_INVALID");
    expect(fault.message).toContain(message);
    expect(fault.hint).not.toBe("");
  });

  test("all bad values are told at once", () => {
    const fault = refusal(["-healthz-port=x", "-public-ip=y"], { FLANNELD_V: "z" });
    expect([fault, ...fault.others].map(({ message }) => message.split(":")[0])).toEqual([
      "flag -public-ip",
      "flag -healthz-port",
      "variable FLANNELD_V",
    ]);
  });

  test("a health port that turns the server off", () => {
    expect(options("-healthz-port=-1").healthzPort).toBe(-1);
  });

  test("a long value is cut in the message", () => {
    expect(refusal([`-log-format=${"x".repeat(10_000)}`]).message.length).toBeLessThan(300);
  });

  test("a password without a user is warned about", () => {
    const { warnings } = parseCommandLine(["-etcd-password=hunter2"], {});
    expect(warnings).toEqual(["flag -etcd-password has no effect without -etcd-username"]);
  });
});

describe("secrets", () => {
  const secrets = fc.stringMatching(/^[A-Za-z0-9!$%&*()]{6,20}$/).map((text) => `S3cr#t${text}`);

  test("none is in describeOptions", () => {
    fc.assert(
      fc.property(secrets, fc.boolean(), (secret, fromEnvironment) => {
        const argv = ["-etcd-username=root", ...(fromEnvironment ? [] : ["-etcd-password", secret])];
        const line = parseCommandLine(argv, fromEnvironment ? { FLANNELD_ETCD_PASSWORD: secret } : {});
        expect(line.options.etcdPassword).toBe(secret);
        const shown = describeOptions(line.options);
        expect(JSON.stringify(shown)).not.toContain(secret);
        expect(shown["etcd-password"]).toBe("[redacted]");
      }),
    );
  });

  test("none is in a message, however it went wrong", () => {
    const credentials = (secret: string): [string[], Record<string, string>][] => [
      [["-etcd-password", secret, "-v=x"], {}],
      [["-etcd-password", "first", secret], {}],
      [["-v=x"], { FLANNELD_ETCD_PASSWORD: secret }],
      [[`-etcd-pasword=${secret}`], {}],
      [[`-etcd-endpoints=http://root:${secret}@etcd:2379`], {}],
      [[`-etcd-endpoints=http://root:${secret},x@etcd:2379`], {}],
      [[`-etcd-endpoints=root:${secret}@etcd`], {}],
      [[`-kube-api-url=https://root:${secret}@api`], {}],
      [[], { FLANNELD_KUBE_API_URL: `https://root:${secret}@api` }],
    ];
    fc.assert(
      fc.property(secrets, (secret) => {
        for (const [argv, environment] of credentials(secret)) {
          const fault = refusal(argv, environment);
          for (const { message, hint } of [fault, ...fault.others])
            expect(message + hint).not.toContain(secret);
        }
      }),
    );
  });

  test("everything that is set and no secret is described", () => {
    const shown = describeOptions(options("-iface=eth0", "-node-id=n1", "-subnet-lease-ttl=90m"));
    expect(shown).toMatchObject({
      iface: ["eth0"],
      "node-id": "n1",
      "subnet-lease-ttl": "1h30m",
      "iptables-resync": "5s",
    });
    expect(Object.keys(shown)).not.toContain("public-ip");
    expect(FLAG_NAMES.filter((name) => flagSpec(name).secret)).toEqual(["etcd-password"]);
  });
});

describe("durations", () => {
  test.each([
    ["0", 0],
    ["10s", 10_000],
    ["1h30m", 5_400_000],
    ["1.5h", 5_400_000],
    ["-1.5s", -1_500],
    ["+5s", 5_000],
    ["500ms", 500],
    [".5s", 500],
    ["1.s", 1_000],
    ["100us", 0.1],
    ["100µs", 0.1],
    ["1m1m", 120_000],
  ])("%s", (text, ms) => {
    expect(parseDuration(text)).toBeCloseTo(ms, 6);
  });

  test.each(["", "-", "1", "s", "1d", "1 h", "h1", "1h ", ".s", "1..5s", "1e3s", "0x1s"])(
    "refuses %p",
    (text) => {
      expect(parseDuration(text)).toBeUndefined();
    },
  );

  test("round trip", () => {
    fc.assert(
      fc.property(fc.integer({ min: -1e12, max: 1e12 }), (ms) =>
        expect(parseDuration(formatDuration(ms))).toBeCloseTo(ms, 3),
      ),
    );
    expect(formatDuration(86_400_000)).toBe("24h");
    expect(formatDuration(0)).toBe("0s");
  });
});

describe("regular expressions of Go", () => {
  test.each([
    ["eth", "veth0", true],
    ["^eth[0-9]+$", "eth12", true],
    ["(?i)ETH", "veth0", true],
    ["(?P<name>en)p", "enp3s0", true],
    ["^[[:alpha:]]+[[:digit:]]$", "eth0", true],
    ["^[[:alpha:]]+$", "eth0", false],
    ["\\Aeth0\\z", "eth0", true],
    ["\\Aeth0\\z", "eth01", false],
    ["^192\\.168\\.", "192.168.5.20", true],
    ["\\\\A", "\\A", true],
  ])("%s on %s: %p", (pattern, text, matches) => {
    expect(compileGoRegex(pattern).test(text)).toBe(matches);
  });

  test.each(["(", "[", "*", "(?P<a", "(?q)x", "(?ii)("])("refuses %s", (pattern) => {
    expect(() => compileGoRegex(pattern)).toThrow(SyntaxError);
  });
});
