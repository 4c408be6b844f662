import { runAgent } from "../../agent/run.ts";
import type { Settings } from "../../agent/settings.ts";
import { stopOnSignal } from "../../agent/signals.ts";
import { run } from "../../host/exec.ts";
import { toFault } from "../../observe/fault.ts";
import { Health } from "../../observe/health.ts";
import { createLog, type Log } from "../../observe/log.ts";
import type { Registry } from "../../registry/registry.ts";
import { etcdOptions, refuseKubernetes } from "../etcd-options.ts";
import { type CommandLine, describeOptions } from "../flags.ts";
import { commitText, versionText } from "./version.ts";

/** `flanneld [run]`: the daemon until it is stopped. Returns the exit code. */
export async function runDaemon(line: CommandLine, discover: () => Registry): Promise<number> {
  const { options } = line;
  const log = createLog({ verbosity: options.verbosity, form: chooseForm(options.logFormat) });
  const health = new Health(log);
  const signal = stopOnSignal(log);
  surviveStrayErrors(log, health);
  log.info(`flanneld ${versionText()}`, { pid: process.pid, options: describeOptions(options) });
  for (const warning of line.warnings) log.warn(warning);
  try {
    refuseKubernetes(options);
    await runAgent({
      build: { version: versionText(), commit: commitText() },
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
  return openEtcdStore({
    ...etcdOptions(settings, log),
    ttlMs: settings.subnetLeaseTtl,
    marginMs: settings.subnetLeaseRenewMargin,
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

/**
 * Time after which a stray error no longer makes the node unready, when no other came, ms: long enough for a supervisor
 * to see it, and log and journal keep it.
 */
const STRAY_FORGOTTEN_MS = 30_000;

/** An error nobody waited for (most likely a plugin's timer) is shown and does not end the daemon. */
function surviveStrayErrors(log: Log, health: Health): void {
  let forget: ReturnType<typeof setTimeout> | undefined;
  const show = (error: unknown) => {
    clearTimeout(forget);
    forget = setTimeout(() => health.clear("STRAY_ERROR"), STRAY_FORGOTTEN_MS);
    forget.unref();
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
