/**
 * The daemon under a real systemd, installed by install.sh with the shipped unit, from the first boot to the removal.
 *
 *   pod ── cni0 ── h1 (systemd: flanneld.service) ── ext0 ─┬─ switch + etcd
 *   pod ── cni0 ── h2 (flanneld) ─────────────────── ext0 ─┘
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { Cluster, networkConfig } from "../lab/cluster.ts";
import { executable } from "../lab/daemon.ts";
import type { Host } from "../lab/host.ts";
import { PingFlow } from "../lab/ping-flow.ts";
import { Pod } from "../lab/pod.ts";
import { readSubnetFile } from "../lab/subnet-file.ts";
import { endpointFor } from "../lab/switch-etcd.ts";
import { SystemdMachine } from "../lab/systemd-machine.ts";
import { until } from "../lab/until.ts";
import { dumpNetwork } from "./command.ts";
import { ipsecConfig } from "./ipsec-lab.ts";

const TIMEOUT = 90_000;
const DIST = resolve(import.meta.dir, "../../dist");
const SUBNET_FILE = "/run/flannel/subnet.env";
/** Shorter than the unit's own, so that nobody has to wait for it; the way of it is the same. */
const WATCHDOG = "[Service]\nWatchdogSec=2\nTimeoutStopSec=2\n";

const obstacle = await SystemdMachine.obstacle();
let cluster: Cluster;
let machine: SystemdMachine;
let [h1, h2]: Host[] = [];
let [p1, p2]: Pod[] = [];
let before = "";

describe.skipIf(obstacle !== undefined)(
  `under systemd${obstacle === undefined ? "" : ` (skipped: ${obstacle})`}`,
  () => {
    beforeAll(async () => {
      cluster = await Cluster.create({ hosts: 2, config: null });
      [h1, h2] = cluster.hosts;
      before = await dumpNetwork(h1!);
      machine = await SystemdMachine.boot(h1!, { "/mnt": DIST, "/media": resolve(executable(), "..") });
    }, TIMEOUT);
    afterAll(async () => {
      await p1?.[Symbol.asyncDispose]();
      await machine?.[Symbol.asyncDispose]();
      await cluster?.[Symbol.asyncDispose]();
    });

    /** Properties of the unit. */
    async function show(...names: readonly string[]): Promise<Readonly<Record<string, string>>> {
      const text = await machine.sh(`systemctl show flanneld -p ${names.join(",")}`);
      return Object.fromEntries(
        text
          .trim()
          .split("\n")
          .map((line) => line.split(/=(.*)/s).slice(0, 2)),
      );
    }
    const journal = () => machine.sh("journalctl -u flanneld --no-pager -o cat | tail -n 30");
    const state = async () => (await show("ActiveState")).ActiveState;

    test(
      "install.sh, and a start that waits for the network config before systemd calls it active",
      async () => {
        const installed = await machine.sh("sh /mnt/install.sh --binary /media/flanneld");
        for (const file of ["/usr/local/bin/flanneld", "/etc/systemd/system/flanneld.service"]) {
          expect(installed).toContain(file);
        }
        expect(await machine.sh("systemd-analyze verify flanneld.service 2>&1")).toBe("");
        expect(statSync(machine.path("/etc/flannel/flanneld.env")).mode & 0o777).toBe(0o600);
        await machine.sh(
          `printf 'FLANNELD_ETCD_ENDPOINTS=%s\\nFLANNELD_IFACE=ext0\\nFLANNELD_IP_MASQ=true\\n' '${endpointFor(h1!, cluster.switch)}' >>/etc/flannel/flanneld.env
         systemctl enable flanneld && systemctl start --no-block flanneld`,
        );
        await until(async () => (await journal()).includes("CONFIG_MISSING"), { message: journal });
        expect(await state()).toBe("activating");
        expect(existsSync(machine.path(SUBNET_FILE))).toBe(false);
        await cluster.configure(networkConfig("v4"));
        await until(async () => (await state()) === "active", { message: journal });
        expect(existsSync(machine.path(SUBNET_FILE))).toBe(true);
        expect((await machine.run("flanneld", "status")).exitCode).toBe(0);
        await cluster.startDaemon(h2!).ready;
        p2 = await cluster.addPod(h2!);
        p1 = await Pod.create(h1!, { subnets: await readSubnetFile(machine.path(SUBNET_FILE)) });
      },
      TIMEOUT,
    );

    test(
      "systemctl restart, under 100 pings a second: none is lost, and the subnet file stays",
      async () => {
        await using flow = await PingFlow.start(p1!, p2!.ipv4, { rate: 100 });
        const former = readFileSync(machine.path(SUBNET_FILE), "utf8");
        for (let round = 0; round < 3; round++) {
          const { MainPID } = await show("MainPID");
          await machine.sh("systemctl restart flanneld");
          expect((await show("MainPID")).MainPID).not.toBe(MainPID);
          expect(await state()).toBe("active");
          expect(readFileSync(machine.path(SUBNET_FILE), "utf8")).toBe(former);
        }
        expect(await flow.stop()).toMatchObject({ lost: 0, duplicates: 0 });
      },
      TIMEOUT,
    );

    test(
      "what the unit forbids is nothing that the daemon needs: the lock of iptables-legacy, sysctls, its folder",
      async () => {
        // As kube-proxy would: now the rules have to go there, too.
        await machine.sh(
          "iptables-legacy -t nat -N KUBE-POSTROUTING; rm -f /run/xtables.lock; systemctl restart flanneld",
        );
        await until(async () => (await machine.sh("iptables-legacy-save")).includes("-j FLANNEL-FWD"), {
          message: journal,
        });
        const { stdout } = await machine.run("flanneld", "status", "-o", "json");
        expect(JSON.parse(stdout)).toMatchObject({ ready: true, findings: [] });
        const errors = await machine.sh("journalctl -u flanneld --no-pager -o cat");
        expect(errors).not.toMatch(/read-only file system|permission denied|not permitted/i);
        await machine.sh("iptables-legacy -t nat -X KUBE-POSTROUTING");
      },
      TIMEOUT,
    );

    test(
      "charon may do its work under the unit, outlives a restart of it, and ends with its backend",
      async () => {
        await cluster.configure(ipsecConfig());
        await machine.sh("systemctl restart flanneld");
        const listens = async () => (await machine.run("swanctl", "--stats")).exitCode === 0;
        await until(listens, { message: journal });
        const charon = await machine.sh("cat /run/charon.pid");
        await machine.sh("systemctl restart flanneld");
        expect(await journal()).toContain("going on with the charon of the last run");
        expect([await listens(), await machine.sh("cat /run/charon.pid")]).toEqual([true, charon]);
        expect(await journal()).not.toMatch(/CHARON_DOWN|requires CAP_/);
        await cluster.configure(networkConfig("v4"));
        await machine.sh("systemctl restart flanneld");
        expect([await listens(), await machine.sh("ls /run | grep -E 'charon.(pid|vici)' || true")]).toEqual([
          false,
          "",
        ]);
      },
      TIMEOUT,
    );

    test(
      "the watchdog is answered; a daemon that hangs is started anew, and the data path does not notice",
      async () => {
        await machine.sh(
          `mkdir -p /etc/systemd/system/flanneld.service.d
         printf '${WATCHDOG.replaceAll("\n", "\\n")}' >/etc/systemd/system/flanneld.service.d/watchdog.conf
         systemctl daemon-reload && systemctl restart flanneld`,
        );
        await using flow = await PingFlow.start(p1!, p2!.ipv4, { rate: 100 });
        const { MainPID, NRestarts, WatchdogTimestampMonotonic } = await show(
          "MainPID",
          "NRestarts",
          "WatchdogTimestampMonotonic",
        );
        // Two whole periods, in µs.
        const alive = Number(WatchdogTimestampMonotonic) + 2 * 2_000_000;
        await until(
          async () => Number((await show("WatchdogTimestampMonotonic")).WatchdogTimestampMonotonic) > alive,
          { message: journal, deadline: 20_000, interval: 200 },
        );
        expect(await show("MainPID", "NRestarts")).toEqual({ MainPID: MainPID!, NRestarts: NRestarts! });

        await machine.sh(`kill -STOP ${MainPID}`);
        await until(
          async () => {
            const now = await show("MainPID", "NRestarts", "ActiveState");
            return Number(now.NRestarts) > Number(NRestarts) && now.ActiveState === "active";
          },
          { message: journal, deadline: 30_000, interval: 200 },
        );
        expect(await machine.sh("journalctl -u flanneld --no-pager")).toContain("Watchdog timeout");
        expect(await flow.stop()).toMatchObject({ lost: 0, duplicates: 0 });
      },
      TIMEOUT,
    );

    test(
      "stop, cleanup, uninstall.sh: nothing is left",
      async () => {
        await p1![Symbol.asyncDispose]();
        await h1!.namespace.ip("link delete cni0");
        await machine.sh("systemctl stop flanneld");
        const device = await h1!.namespace.exec("ip", "link", "show", "flannel.1");
        expect(device).toContain("flannel.1");
        await machine.sh("set -a; . /etc/flannel/flanneld.env; flanneld cleanup");
        const removed = await machine.sh("sh /mnt/uninstall.sh --purge");
        expect(removed).toContain("/etc/systemd/system/flanneld.service");
        const left = await machine.sh(
          "find /usr/local/bin /usr/local/libexec /etc/systemd /etc/flannel /run/flannel -mindepth 1 -name '*flannel*' 2>/dev/null || true",
        );
        expect(left.split("\n").filter((line) => line !== "" && !/service\.d$/.test(line))).toEqual([]);
        expect((await machine.run("systemctl", "is-enabled", "flanneld")).exitCode).not.toBe(0);
        expect(await dumpNetwork(h1!)).toBe(before);
      },
      TIMEOUT,
    );
  },
);
