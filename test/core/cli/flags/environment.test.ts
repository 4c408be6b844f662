import { describe, expect, test } from "bun:test";
import { parse, refusal } from "./parse.ts";

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
