import { runAgent } from "../../agent/run.ts";
import type { Settings } from "../../agent/settings.ts";
import { stopOnSignal } from "../../agent/signals.ts";
import { run } from "../../host/exec.ts";
import { Fault, toFault } from "../../observe/fault.ts";
import { Health } from "../../observe/health.ts";
import { createLog, type Log } from "../../observe/log.ts";
import type { Registry } from "../../registry/registry.ts";
import { type CommandLine, describeOptions } from "../flags.ts";
import { versionText } from "./version.ts";

/** `flanneld [run]`: the daemon until it is stopped. Returns the exit code. */
export async function runDaemon(line: CommandLine, discover: () => Registry): Promise<number> {
  const { options } = line;
  const log = createLog({ verbosity: options.verbosity, form: chooseForm(options.logFormat) });
  const health = new Health(log);
  const signal = stopOnSignal(log);
  surviveStrayErrors(log, health);
  log.info(`flanneld ${versionText()}`, { pid: process.pid, options: describeOptions(options) });
  for (const warning of line.warnings) log.warn(warning);
  warnAboutPending(line, log);
  try {
    refuseKubernetes(line);
    await runAgent({
      settings: options,
      log,
      health,
      registry: discover(),
      openStore: () => openStore(options, log, health),
      openKernel: () => openKernel(log),
      signal,
    });
    return 0;
  } catch (error) {
    const fault = toFault(error, "INTERNAL", "unexpected: ", "Please report this with the log.");
    for (const one of [fault, ...fault.others]) log.error(one.message, { code: one.code, hint: one.hint });
    if (fault.code === "INTERNAL" && error instanceof Error) log.debug("where", { stack: error.stack });
    return 1;
  }
}

/** etcd's client is heavy: it is imported only after the first log line is out. */
async function openStore(settings: Settings, log: Log, health: Health) {
  const { openEtcdStore } = await import("../../lease/etcd/store.ts");
  const { etcdUsername: username, etcdPassword: password } = settings;
  return openEtcdStore({
    endpoints: settings.etcdEndpoints,
    prefix: settings.etcdPrefix,
    ...(settings.etcdCafile === undefined ? {} : { caFile: settings.etcdCafile }),
    ...(settings.etcdCertfile === undefined ? {} : { certFile: settings.etcdCertfile }),
    ...(settings.etcdKeyfile === undefined ? {} : { keyFile: settings.etcdKeyfile }),
    ...(username === undefined || password === undefined ? {} : { login: { username, password } }),
    ttlMs: settings.subnetLeaseTtl,
    marginMs: settings.subnetLeaseRenewMargin,
    log,
    health,
  });
}

async function openKernel(log: Log) {
  const { openKernel: open } = await import("../../netlink/open.ts");
  return open(log, run);
}

function chooseForm(wanted: "auto" | "json" | "text"): "json" | "text" {
  if (wanted !== "auto") return wanted;
  return process.stderr.isTTY ? "text" : "json";
}

/** An error nobody waited for (most likely a plugin's timer) is shown and does not end the daemon. */
function surviveStrayErrors(log: Log, health: Health): void {
  const show = (error: unknown) => {
    health.raise({
      code: "STRAY_ERROR",
      severity: "error",
      title: "an error that nobody waited for",
      text: toFault(error, "STRAY_ERROR").message,
      fix: "The daemon goes on; please report this with the log around it.",
    });
    if (error instanceof Error) log.debug("where", { stack: error.stack });
  };
  process.on("uncaughtException", show);
  process.on("unhandledRejection", show);
}

/** Flags accepted by name whose effect is not there yet: said, never silently ignored. */
const PENDING: readonly string[] = ["ip-masq", "ip-blackhole-route", "healthz-port"];

function warnAboutPending({ explicit }: CommandLine, log: Log): void {
  for (const name of PENDING) {
    if (explicit.has(name))
      log.warn(`flag -${name} is accepted, but has no effect in this version`, { flag: name });
  }
}

/** Falling back to etcd would join another cluster than the one that was asked for. */
function refuseKubernetes({ options }: CommandLine): void {
  if (!options.kubeSubnetMgr) return;
  throw new Fault("STORE_UNSUPPORTED", "flag -kube-subnet-mgr: this version keeps leases in etcd only", {
    hint: "Leave the flag out and give -etcd-endpoints.",
  });
}
