import { accessSync, constants, existsSync } from "node:fs";
import { dirname } from "node:path";
import {
  type ChosenBackend,
  checkHost,
  chooseBackend,
  configureBackend,
  networksOf,
} from "../../agent/backend.ts";
import { leaseRangesOf } from "../../agent/cloud.ts";
import { describeExternal, wishesOf } from "../../agent/prepare.ts";
import { pluginFlags } from "../../agent/settings.ts";
import type { NetworkConfig } from "../../config/network.ts";
import { leftRoutesFile, leftRoutesFinding, readLeftRoutes } from "../../dataplane/cloud/left-routes.ts";
import { gatherFacts } from "../../dataplane/facts.ts";
import { run } from "../../host/exec.ts";
import type { InterfaceChoice } from "../../host/interface/choose.ts";
import { look } from "../../host/interface/find.ts";
import { lockHolder } from "../../host/lock.ts";
import { identifyNode } from "../../host/node-id.ts";
import { assertSubnetFilePath, readSubnetFile } from "../../host/subnet-file.ts";
import { listUdpPorts } from "../../host/udp-ports.ts";
import type { Families } from "../../lease/lease.ts";
import type { Kernel } from "../../netlink/kernel.ts";
import { openKernel } from "../../netlink/open.ts";
import { silentLog } from "../../observe/log.ts";
import type { Registry } from "../../registry/registry.ts";
import { listDenials } from "../../traffic/forwarding/list.ts";
import { openTrafficHost } from "../../traffic/host.ts";
import { checkFirewall } from "../check/firewall.ts";
import { checkMachine, readHostSettings } from "../check/gather.ts";
import { checkClock, checkNeighbourTable, checkPrivileges, checkSysctls } from "../check/host.ts";
import { type CheckItem, findingOf, item } from "../check/item.ts";
import { checkDevices, checkMtu, checkOverlap, type NetworkDump } from "../check/network.ts";
import { checkLease, lookAtStore, type StoreLook } from "../check/store.ts";
import { commandLog } from "../command-log.ts";
import type { CommandLine } from "../flags.ts";
import { rangesOf } from "../lease-access.ts";
import type { Options } from "../options.ts";
import { renderTable } from "../table.ts";
import type { Answered } from "./status.ts";

/** Families looked at as long as no config tells. */
const IPV4_ONLY: Families = { ipv4: true, ipv6: false };

/**
 * `flanneld check [-o json]`: looks for what would keep the daemon from working on this host; changes nothing. Exit
 * code 0 when no error was found, 1 when one was. Runs without root too, and says what it could not look at.
 */
export async function preflight(line: CommandLine, discover: () => Registry): Promise<Answered> {
  const { options, output, warnings } = line;
  for (const warning of warnings) process.stderr.write(`flanneld: warning: ${warning}\n`);
  const log = commandLog(line);
  const store = await lookAtStore(options, log);
  const kernel = await openKernel(log, run);
  try {
    const items = await checkAll({ options, store, kernel, registry: discover() });
    const failed = items.some(({ findings }) => findings.some(({ severity }) => severity === "error"));
    const text = output === "json" ? renderJson(items, failed) : renderItems(items);
    return { text, code: failed ? 1 : 0 };
  } finally {
    kernel.close();
  }
}

interface Subject {
  readonly options: Options;
  readonly store: StoreLook;
  readonly kernel: Kernel;
  readonly registry: Registry;
}

async function checkAll(subject: Subject): Promise<readonly CheckItem[]> {
  const { options, store, kernel } = subject;
  const config = store.config?.state === "valid" ? store.config.reading.config : undefined;
  const families = config?.families ?? IPV4_ONLY;
  const { decision, dump } = await look({ kernel, wish: wishesOf(options), families });
  const choice = "choice" in decision ? decision.choice : undefined;
  const settings = readHostSettings(choice?.candidate.link.name);
  return [
    checkPrivileges(settings),
    checkClock(settings),
    checkSubnetFile(options.subnetFile),
    ...store.items,
    "choice" in decision
      ? item("interface", describeChoice(decision.choice))
      : item("interface", "none", [
          findingOf(decision.fault, decision.fault.code, "no interface between the hosts"),
        ]),
    ...(config ? [checkOverlap(networksOf(config), dump, hostsOf(options.etcdEndpoints))] : []),
    ...(config ? await checkBackend(subject, config, choice, dump) : []),
    ...(config ? checkLeftRoutes(options.subnetFile, config.backend.type) : []),
    checkSysctls(settings, families, choice?.candidate.link.name ?? "all"),
    ...(config ? [checkNeighbourTable(settings, families, store.leases.length)] : []),
  ];
}

function checkSubnetFile(subnetFile: string): CheckItem {
  const holder = lockHolder(subnetFile);
  try {
    // Where the folder is still to be made, its parent has to take it: a check makes nothing.
    if (existsSync(dirname(subnetFile))) assertSubnetFilePath(subnetFile);
    else accessSync(nearestFolder(dirname(subnetFile)), constants.W_OK);
    return item(
      "subnet file",
      `${subnetFile}${holder === undefined ? "" : `, flanneld runs (pid ${holder})`}`,
    );
  } catch (error) {
    return item("subnet file", subnetFile, [
      findingOf(error, "SUBNET_FILE", "the subnet file cannot be written"),
    ]);
  }
}

/** Routes that an earlier backend left in a cloud. */
function checkLeftRoutes(subnetFile: string, backend: string): readonly CheckItem[] {
  const file = leftRoutesFile(subnetFile);
  const left = readLeftRoutes(file);
  if (left === undefined || left.backend === backend) return [];
  return [item("cloud", `routes of ${left.backend}`, [leftRoutesFinding(file, left)])];
}

function nearestFolder(path: string): string {
  return existsSync(path) ? path : nearestFolder(dirname(path));
}

/** What depends on the backend: its plugin, the machine, devices, MTU, the lease, and the firewall in its way. */
async function checkBackend(
  { options, store, kernel, registry }: Subject,
  config: NetworkConfig,
  choice: InterfaceChoice | undefined,
  dump: NetworkDump,
): Promise<readonly CheckItem[]> {
  if (store.config?.state !== "valid") return [];
  const { reading, document } = store.config;
  let chosen: ChosenBackend;
  try {
    chosen = await chooseBackend(registry, reading, document.source);
  } catch (error) {
    return [
      item("backend", config.backend.type, [findingOf(error, "PLUGIN_FAILED", "the backend cannot be used")]),
    ];
  }
  const { manifest } = chosen.loaded;
  const items = [
    item("backend", `${config.backend.type} (plugin ${manifest.name} ${manifest.version})`, chosen.warnings),
  ];
  items.push(await checkMachine(manifest));
  let port = portOf(manifest.requires.ports);
  if (choice) {
    const external = describeExternal(choice, options);
    const { subnetFile, nodeId } = options;
    const identity = identifyNode({
      wanted: nodeId ?? "",
      subnetFile,
      ...(external.mac ? { mac: external.mac } : {}),
    });
    const facts = await gatherFacts(kernel, { external, devices: [], usesRoutes: true });
    try {
      const found = await checkHost(chosen, config, identity.nodeId, facts, pluginFlags(options));
      const backend = configureBackend(chosen, config, identity.nodeId, pluginFlags(options));
      if (found.length > 0) items.push(item("plugin check", manifest.name, found));
      if (backend.mode === "declarative") {
        const links = backend.links(facts);
        port = links.find((link) => link.type === "vxlan")?.vxlan.port ?? port;
        items.push(checkDevices(links, dump.links, listUdpPorts()));
        items.push(checkMtu(choice.candidate.link, backend.mtu(facts), config.families));
      } else if (backend.mode === "cloud") {
        const { checkCloud } = await import("../cloud-tables.ts");
        const ranges = leaseRangesOf(config);
        const subject = { backend, ranges, facts, timeout: manifest.timeouts.sync, log: silentLog };
        items.push(await checkCloud(subject, readSubnetFile(subnetFile).subnets));
      }
    } catch (error) {
      items.push(
        item("plugin check", manifest.name, [
          findingOf(error, "PLUGIN_FAILED", "the backend refuses this host"),
        ]),
      );
    }
    const self = {
      backendType: config.backend.type,
      ...(external.publicIP === undefined ? {} : { publicIP: external.publicIP }),
      ...(external.publicIPv6 === undefined ? {} : { publicIPv6: external.publicIPv6 }),
      ...identity,
    };
    items.push(checkLease(store, self, rangesOf(store.config) ?? {}, readSubnetFile(subnetFile).subnets));
  }
  const host = openTrafficHost(run);
  const networks = {
    ...(config.ipv4 ? { 4: config.ipv4.network } : {}),
    ...(config.ipv6 ? { 6: config.ipv6.network } : {}),
  };
  const wishes = {
    families: config.families,
    enableNFTables: config.enableNFTables,
    forwardRules: options.iptablesForwardRules,
    ipMasq: options.ipMasq,
    port,
  };
  try {
    items.push(checkFirewall(await listDenials(host, networks), wishes, host));
  } catch (error) {
    items.push(
      item("firewall", "could not be looked at", [
        { ...findingOf(error, "FIREWALL", "the firewall could not be looked at"), severity: "info" },
      ]),
    );
  } finally {
    host.generation?.close();
  }
  return items;
}

/** The UDP port a plugin needs open: `udp/8472`. */
function portOf(ports: readonly string[]): number | undefined {
  const port = ports.find((text) => text.startsWith("udp/"))?.slice("udp/".length);
  return port === undefined ? undefined : Number(port);
}

function hostsOf(endpoints: readonly string[]): readonly string[] {
  return endpoints.flatMap((endpoint) =>
    URL.canParse(endpoint) ? new URL(endpoint).hostname.replace(/^\[|\]$/g, "") : [],
  );
}

function describeChoice({ candidate, ipv4, ipv6, reason }: InterfaceChoice): string {
  return `${[candidate.link.name, ipv4, ipv6].filter(Boolean).join(" ")} (${reason})`;
}

function renderJson(items: readonly CheckItem[], failed: boolean): string {
  return `${JSON.stringify({ ok: !failed, checks: items }, null, 2)}\n`;
}

/** The items for people: a table, then what to do. */
export function renderItems(items: readonly CheckItem[]): string {
  const rows = items.map(({ name, detail, findings }) => [
    name,
    findings.find(({ severity }) => severity === "error")?.severity ??
      findings.find(({ severity }) => severity === "warning")?.severity ??
      "ok",
    detail,
  ]);
  const told = items
    .flatMap(({ findings }) => findings)
    .map(({ severity, code, text, fix }) => `\n${severity} ${code}: ${text}\n  hint: ${fix}\n`);
  return renderTable(["CHECK", "RESULT", "DETAIL"], rows) + told.join("");
}
